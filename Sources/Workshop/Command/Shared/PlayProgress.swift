import Foundation
import ReelCore

/// A status line at the bottom of a terminal that is rewritten in place, below lines that scroll. It uses
/// standard error only.
final class PlayProgress: Sendable {
  private let isShown = Locked(false)

  /// Nil if standard error is not a terminal, or can't rewrite a line.
  init?() {
    let environment = ProcessInfo.processInfo.environment
    guard isatty(STDERR_FILENO) == 1, environment["TERM"] != "dumb" else { return nil }
  }

  /// Rewrites the status line, cut to the terminal's width.
  func show(_ line: String) {
    let cut = String(Console.clean(line, .plain).prefix(Terminal.columns(of: STDERR_FILENO) - 1))
    isShown.withLock { isShown in
      Self.write(Self.erase + cut)
      isShown = true
    }
  }

  /// Prints a line that stays.
  func add(_ line: String) {
    let line = Console.clean(line, Terminal.errorLayout)
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

/// A line on a terminal while a command works for longer than two seconds.
enum WorkProgress {
  /// Runs `body`, and repeatedly shows `text` from two seconds on until it ends.
  ///
  /// - Parameters:
  ///   - isShown: False to show nothing, as for `--quiet`.
  ///   - text: Returns the line for the time since the beginning.
  static func showing<Result>(
    when isShown: Bool = true, _ text: @escaping @Sendable (Duration) -> String,
    _ body: () async throws -> Result
  ) async rethrows -> Result {
    guard isShown, let line = PlayProgress() else { return try await body() }
    let start = ContinuousClock.now
    Console.setProgress(line)
    let task = Task {
      try? await Task.sleep(for: .seconds(2))
      while !Task.isCancelled {
        line.show(text(ContinuousClock.now - start))
        try? await Task.sleep(for: .milliseconds(200))
      }
      line.clear()
    }
    func end() async {
      task.cancel()
      await task.value
      Console.setProgress(nil)
    }
    do {
      let result = try await body()
      await end()
      return result
    } catch {
      await end()
      throw error
    }
  }
}

extension Duration {
  /// The part of a progress line about one source: `working, 3 s`.
  var progressText: String { "working, \(Int(self / .seconds(1))) s" }
}
