import ArgumentParser
import Foundation
import ReelCore

/// Standard output for results, standard error for everything else. Each line is written in one piece.
enum Console {
  private static let output = Locked(STDOUT_FILENO)
  private static let errorOutput = Locked(STDERR_FILENO)
  /// The line of progress, which is erased before anything else is written.
  private static let progress = Locked<PlayProgress?>(nil)
  private static let quiet = Locked(false)

  /// Whether only errors are printed to standard error (`--quiet`).
  static var isQuiet: Bool {
    get { quiet.withLock { $0 } }
    set { quiet.withLock { $0 = newValue } }
  }

  static func setProgress(_ line: PlayProgress?) { progress.withLock { $0 = line } }

  /// Throws `ReelError.cannotWriteOutput`, also if the reader has closed its end.
  static func print(_ line: String) throws(ReelError) { try write(Array("\(line)\n".utf8)) }

  /// Prints text. On a terminal, lines that are too wide continue on further lines.
  static func printText(_ text: String) throws(ReelError) {
    try print(Terminal.layout.fitted(clean(text, Terminal.layout)))
  }

  /// Returns text as all text is printed: without user names and passwords of URLs, and without control characters other
  /// than tabs, line feeds and the colours of a layout.
  ///
  /// - Parameter isLine: True to escape tabs and line feeds too.
  static func clean(_ text: String, _ layout: TextLayout, isLine: Bool = false) -> String {
    let escaped = { (part: Substring) in isLine ? part.printable : part.printableText }
    var (clean, rest) = ("", text.withoutUserInformation[...])
    while layout.usesColor, let color = rest.firstMatch(of: TextLayout.Style.sequence) {
      clean += escaped(rest[..<color.range.lowerBound]) + color.output
      rest = rest[color.range.upperBound...]
    }
    return clean + escaped(rest)
  }

  /// Writes text to standard output.
  static func write(_ text: [UInt8]) throws(ReelError) {
    clearProgress()
    let bytes = Array(clean(String(decoding: text, as: UTF8.self), Terminal.layout).utf8)
    let code = output.withLock { writeAll($0, bytes) }
    if code != 0 {
      throw ReelError(
        .cannotWriteOutput, "can't be written: \(ReelError.systemText(code))", at: "standard output")
    }
  }

  /// Prints an error to standard error.
  static func report(_ error: ReelError) { fault("\(error)") }

  /// Prints a failure to standard error.
  static func fault(_ text: String) { printError("\(styled("reel:", .bad)) \(line(text))") }

  /// Prints a warning to standard error, unless the user wants only errors.
  static func warn(_ text: String) {
    if !isQuiet { printError("reel: \(styled("warning:", .warning)) \(line(text))") }
  }

  /// Prints a remark, neither a result nor a failure, to standard error, unless the user wants only errors.
  static func remark(_ text: String) { if !isQuiet { printError("reel: \(line(text))") } }

  private static func line(_ text: String) -> String { clean(text, Terminal.errorLayout, isLine: true) }

  /// Prints a line for each of the first few errors, and the number of the others.
  static func report(_ errors: [ReelError]) {
    let limit = 10
    for error in errors.prefix(limit) { report(error) }
    if errors.count > limit { fault("and \(errors.count - limit) more") }
  }

  /// Prints a line to standard error. On a terminal, a line that is too wide continues on further lines, with all its
  /// words whole.
  static func printError(_ line: String) {
    let layout = Terminal.errorLayout
    writeError(layout.fitted(clean(line, layout), shortensWords: false) + "\n")
  }

  /// Standard error as the stream of a logger, which writes a message at a time.
  struct Log: TextOutputStream, Sendable {
    mutating func write(_ text: String) {
      let line = text.hasSuffix("\n") ? text.dropLast() : text[...]
      Console.writeError(line.withoutUserInformation.printable + "\n")
    }
  }

  private static func writeError(_ text: String) {
    clearProgress()
    _ = errorOutput.withLock { writeAll($0, Array(text.utf8)) }
  }

  private static func styled(_ text: String, _ style: TextLayout.Style) -> String {
    Terminal.errorLayout.styled(text, style)
  }

  private static func clearProgress() {
    let line = progress.withLock { $0 }
    line?.clear()
  }

  /// Returns 0 or the error number.
  private static func writeAll(_ descriptor: Int32, _ bytes: [UInt8]) -> Int32 {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 {
        if errno == EINTR { continue }
        return errno
      }
      rest = rest.dropFirst(count)
    }
    return 0
  }
}

extension Error {
  /// The error in the form that the command line reports.
  var asReelError: ReelError {
    if let error = self as? ReelError { return error }
    if self is CancellationError { return ReelError.interrupted }
    return ReelError(.internalFault, "\(self)")
  }
}

extension [ReelError] {
  /// Adds the error of `body`, so that what follows is done nevertheless.
  mutating func catching(_ body: () throws(ReelError) -> Void) {
    do throws(ReelError) { try body() } catch { append(error) }
  }
}

/// The rule for writing in colour (`--color`).
enum ColorMode: String, ExpressibleByArgument, CaseIterable, Sendable {
  /// On a terminal that is not dumb, unless NO_COLOR is set (no-color.org).
  case auto
  case always
  case never

  /// - Parameters:
  ///   - isTerminal: Whether the output is a terminal.
  ///   - environment: The variables of the process.
  func usesColor(isTerminal: Bool, environment: [String: String]) -> Bool {
    switch self {
    case .always: true
    case .never: false
    case .auto: isTerminal && environment["TERM"] != "dumb" && (environment["NO_COLOR"] ?? "").isEmpty
    }
  }

  /// The mode that arguments request, for messages about arguments that can't be parsed.
  init(asking arguments: [String]) {
    self = .auto
    for (index, argument) in arguments.enumerated() {
      var value: String?
      if argument == "--color", index + 1 < arguments.count { value = arguments[index + 1] }
      if argument.hasPrefix("--color=") { value = String(argument.dropFirst("--color=".count)) }
      if let mode = value.flatMap(ColorMode.init(rawValue:)) { self = mode }
    }
  }
}

/// The options of every command that prints text.
struct PrintOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Color text. auto: on a terminal, unless NO_COLOR is set or TERM is dumb. JSON is never colored.",
      valueName: "auto|always|never"))
  var color = ColorMode.auto

  @Flag(help: "Print results as JSON Lines.")
  var json = false

  @Flag(help: "Print no text except errors. JSON and other data is printed all the same.")
  var quiet = false

  /// Sets how this process prints text.
  func apply() {
    Terminal.use(color)
    Console.isQuiet = quiet
  }
}

/// The properties of this process's outputs.
enum Terminal {
  private struct Settings {
    var layout = TextLayout.plain
    var errorLayout = TextLayout.plain
  }

  private static let settings = Locked(Settings())

  /// The layout of text on standard output.
  static var layout: TextLayout { settings.withLock { $0.layout } }

  /// The layout of messages on standard error.
  static var errorLayout: TextLayout { settings.withLock { $0.errorLayout } }

  /// Determines the properties of standard output and standard error. Before the first call, all text is
  /// plain.
  static func use(_ mode: ColorMode) {
    let environment = ProcessInfo.processInfo.environment
    func layout(_ descriptor: Int32) -> TextLayout {
      let isTerminal = isatty(descriptor) == 1
      return TextLayout(
        width: isTerminal ? columns(of: descriptor) : nil,
        usesColor: mode.usesColor(isTerminal: isTerminal, environment: environment))
    }
    let used = Settings(layout: layout(STDOUT_FILENO), errorLayout: layout(STDERR_FILENO))
    settings.withLock { $0 = used }
  }

  /// Returns the number of columns of a terminal; 80 if unknown.
  static func columns(of descriptor: Int32) -> Int {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 1 else { return 80 }
    return Int(size.ws_col)
  }
}

/// The layout of text: the number of columns, and whether in colour.
struct TextLayout: Sendable, Equatable {
  /// The maximum number of columns; nil for no limit, as in a file or a pipe.
  var width: Int?
  var usesColor = false

  /// The minimum width to which lines are fitted.
  private static let leastWidth = 20

  static let plain = TextLayout()

  /// A colour with a meaning (SGR of ECMA-48).
  enum Style: Int, Sendable {
    case bad = 31
    case good = 32
    case warning = 33

    /// A sequence of `styled`.
    static var sequence: Regex<Substring> { #/\u{1b}\[(?:0|31|32|33)m/# }
  }

  func styled(_ text: String, _ style: Style?) -> String {
    guard usesColor, let style, !text.isEmpty else { return text }
    return "\u{1b}[\(style.rawValue)m\(text)\u{1b}[0m"
  }

  /// Returns a message of ArgumentParser, with its first word in colour.
  func withStyledError(_ message: String) -> String {
    let head = "Error:"
    return message.hasPrefix(head) ? styled(head, .bad) + message.dropFirst(head.count) : message
  }

  /// Returns the lines of a text, broken at spaces if they are wider than the layout.
  ///
  /// The continuation of a line is indented by two columns more than the line.
  ///
  /// - Parameter shortensWords: True to shorten words that are wider than a line.
  func fitted(_ text: String, shortensWords: Bool = true) -> String {
    guard let width, width >= Self.leastWidth else { return text }
    return text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      if Self.width(of: line) <= width { return String(line) }
      let indentation = line.prefix { $0 == " " }
      let hanging = indentation.count + 2
      let rest = String(line.dropFirst(indentation.count))
      let lines = Self.wrapped(
        rest, first: width - indentation.count, others: width - hanging, shortensWords: shortensWords)
      return indentation + lines.joined(separator: "\n" + String(repeating: " ", count: hanging))
    }.joined(separator: "\n")
  }

  /// Returns the number of columns of a text, without colours.
  private static func width(of text: some StringProtocol) -> Int {
    guard text.contains("\u{1b}") else { return text.count }
    return String(text).replacing(#/\u{1b}\[[0-9;]*m/#, with: "").count
  }

  /// Returns the words of a text in lines of at most this many characters.
  static func wrapped(_ text: String, first: Int, others: Int, shortensWords: Bool = true) -> [String] {
    func fitting(_ word: Substring, _ width: Int) -> String {
      shortensWords ? shortened(String(word), to: width) : String(word)
    }
    var lines: [String] = []
    var line = ""
    for word in text.split(separator: " ", omittingEmptySubsequences: false) {
      let width = max(1, lines.isEmpty ? first : others)
      if line.isEmpty, lines.isEmpty || !word.isEmpty {
        line = fitting(word, width)
      } else if self.width(of: line) + 1 + self.width(of: word) <= width {
        line += " \(word)"
      } else if !word.isEmpty {
        lines.append(line)
        line = fitting(word, max(1, others))
      }
    }
    return lines + [line]
  }

  /// Returns the first characters of a text, with an ellipsis if there are more. A part of a password could not be
  /// recognised later.
  static func truncated(_ text: String, to count: Int) -> String {
    let text = text.withoutUserInformation
    return text.count <= count ? text : "\(text.prefix(max(1, count - 1)))…"
  }

  /// Returns a text of at most this many characters. An ellipsis replaces the rest: the middle of a URL or
  /// path, whose end is most informative, otherwise the end.
  static func shortened(_ text: String, to count: Int) -> String {
    let text = text.withoutUserInformation
    guard text.count > count, !text.contains("\u{1b}") else { return text }
    guard text.contains("/"), count >= 12 else { return truncated(text, to: count) }
    let head = (count - 1) / 3
    return "\(text.prefix(head))…\(text.suffix(count - 1 - head))"
  }
}
