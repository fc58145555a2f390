import Foundation
import ReelCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A line at the bottom of a terminal that is written again and again, and lines that scroll away above it. All on
/// standard error.
final class PlayProgress: Sendable {
  /// False where NO_COLOR is set (no-color.org).
  let usesColor: Bool
  private let isShown = Locked(false)

  /// Nil where standard error is no terminal, or one that can't write a line again.
  init?() {
    let environment = ProcessInfo.processInfo.environment
    guard isatty(STDERR_FILENO) == 1, environment["TERM"] != "dumb" else { return nil }
    usesColor = (environment["NO_COLOR"] ?? "").isEmpty
  }

  /// Writes the line in place of the one that stands there, cut to the terminal's width.
  func show(_ line: String) {
    let cut = String(line.prefix(Self.columns - 1))
    isShown.withLock { isShown in
      Self.write(Self.erase + cut)
      isShown = true
    }
  }

  /// A line that stays.
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

  /// To the first column, and nothing on the line (ECMA-48 EL).
  private static let erase = "\r\u{1b}[K"

  private static var columns: Int {
    var size = winsize()
    guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 1 else { return 80 }
    return Int(size.ws_col)
  }

  /// In one piece, so that no other line comes between. What can't be written is not shown.
  private static func write(_ text: String) {
    let bytes = Array(text.utf8)
    _ = bytes.withUnsafeBytes { Foundation.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
