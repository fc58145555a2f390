import Foundation
import ReelCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A status line at the bottom of a terminal that is rewritten in place, below lines that scroll. All on
/// standard error.
final class PlayProgress: Sendable {
  private let isShown = Locked(false)

  /// Nil if standard error is not a terminal, or can't rewrite a line.
  init?() {
    let environment = ProcessInfo.processInfo.environment
    guard isatty(STDERR_FILENO) == 1, environment["TERM"] != "dumb" else { return nil }
  }

  /// Rewrites the status line, without user names and passwords of URLs, and cut to the terminal's width.
  func show(_ line: String) {
    let cut = String(line.withoutUserInformation.prefix(Terminal.columns(of: STDERR_FILENO) - 1))
    isShown.withLock { isShown in
      Self.write(Self.erase + cut)
      isShown = true
    }
  }

  /// Prints a line that stays.
  func note(_ line: String) {
    isShown.withLock { isShown in
      Self.write((isShown ? Self.erase : "") + line + "\n")
      isShown = false
    }
  }

  func clear() {
    isShown.withLock { isShown in
      if isShown { Self.write(Self.erase) }
      isShown = false
    }
  }

  // MARK: - Private

  /// Moves to the first column and erases the line (ECMA-48 EL).
  private static let erase = "\r\u{1b}[K"

  /// Writes a text at once, so that no other line comes between. Errors are ignored.
  private static func write(_ text: String) {
    let bytes = Array(text.utf8)
    _ = bytes.withUnsafeBytes { Foundation.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
