import Foundation
import ReelCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Standard output for results, standard error for everything else. Each line is written in one piece.
enum Console {
  private static let output = Locked(STDOUT_FILENO)
  private static let errorOutput = Locked(STDERR_FILENO)
  /// The line of progress, which goes before anything else is written.
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

  /// Prints text for people, without user names and passwords of URLs. On a terminal, lines that are too wide continue on
  /// further lines.
  static func printText(_ text: String) throws(ReelError) {
    try print(Terminal.layout.fitted(text.withoutUserInformation))
  }

  /// Writes bytes to standard output.
  static func write(_ bytes: [UInt8]) throws(ReelError) {
    clearProgress()
    let code = output.withLock { writeAll($0, bytes) }
    if code != 0 {
      throw ReelError(.cannotWriteOutput, "can't be written: \(errorText(code))", at: "standard output")
    }
  }

  /// Prints an error to standard error.
  static func report(_ error: ReelError) { fault("\(error)") }

  /// Prints what has gone wrong to standard error.
  static func fault(_ text: String) { note("\(styled("reel:", .bad)) \(text)") }

  /// Prints a warning to standard error, unless the user wants errors only.
  static func warn(_ text: String) {
    if !isQuiet { note("reel: \(styled("warning:", .warning)) \(text)") }
  }

  /// Prints what is neither a result nor a fault to standard error, unless the user wants errors only.
  static func remark(_ text: String) { if !isQuiet { note("reel: \(text)") } }

  /// Prints a line for each of the first few errors, and the number of the others.
  static func report(_ errors: [ReelError]) {
    let limit = 10
    for error in errors.prefix(limit) { report(error) }
    if errors.count > limit { fault("and \(errors.count - limit) more") }
  }

  /// Prints a line to standard error, without user names and passwords of URLs. On a terminal, a line that is too wide
  /// continues on further lines, with all its words whole.
  static func note(_ line: String) {
    clearProgress()
    let text = Terminal.errorLayout.fitted(line.withoutUserInformation, shortensWords: false)
    _ = errorOutput.withLock { writeAll($0, Array("\(text)\n".utf8)) }
  }

  static func errorText(_ code: Int32) -> String { String(cString: strerror(code)) }

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
  /// The error as the command line reports it.
  var asReelError: ReelError {
    if let error = self as? ReelError { return error }
    if self is CancellationError { return ReelError.interrupted }
    return ReelError(.internalFault, "\(self)")
  }
}
