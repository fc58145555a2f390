import ArgumentParser
import Foundation
import ReelCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// When to write in colour (`--color`).
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

  /// The mode that arguments ask for, for messages about arguments that can't be parsed.
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

/// The option of every command that prints text.
struct ColorOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Color text. auto: on a terminal, unless NO_COLOR is set or TERM is dumb. JSON is never colored.",
      valueName: "auto|always|never"))
  var color = ColorMode.auto
}

/// What the outputs of this process are.
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

  /// Looks at standard output and standard error. Before the first call, all text is plain.
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

  /// The columns of a terminal; 80 if it does not tell.
  static func columns(of descriptor: Int32) -> Int {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 1 else { return 80 }
    return Int(size.ws_col)
  }
}
