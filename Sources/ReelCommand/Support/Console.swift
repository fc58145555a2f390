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

  static func setProgress(_ line: PlayProgress?) { progress.withLock { $0 = line } }

  /// Throws `ReelError.cannotWriteOutput`, also if the reader has closed its end.
  static func print(_ line: String) throws(ReelError) { try write(Array("\(line)\n".utf8)) }

  /// Writes bytes to standard output.
  static func write(_ bytes: [UInt8]) throws(ReelError) {
    clearProgress()
    let code = output.withLock { writeAll($0, bytes) }
    if code != 0 {
      throw ReelError(.cannotWriteOutput, "can't be written: \(errorText(code))", at: "standard output")
    }
  }

  /// Prints an error to standard error.
  static func report(_ error: ReelError) { note("reel: \(error)") }

  /// Prints a line for each of the first few errors, and the number of the others.
  static func report(_ errors: [ReelError]) {
    let limit = 10
    for error in errors.prefix(limit) { report(error) }
    if errors.count > limit { note("reel: and \(errors.count - limit) more") }
  }

  static func note(_ line: String) {
    clearProgress()
    _ = errorOutput.withLock { writeAll($0, Array("\(line)\n".utf8)) }
  }

  static func errorText(_ code: Int32) -> String { String(cString: strerror(code)) }

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
