import ReelCore

/// A line on a terminal while a command works for longer than two seconds.
enum WorkProgress {
  /// Runs `body`, and shows `text` again and again from two seconds on until it ends.
  ///
  /// - Parameters:
  ///   - isShown: False shows nothing, as for `--quiet`.
  ///   - text: Makes the line, by the time since the beginning.
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

/// How many of several sources are done.
final class WorkCount: Sendable {
  private let done = Locked(0)
  private let total: Int

  init(of total: Int) { self.total = total }

  func add() { done.withLock { $0 += 1 } }

  /// `3 of 10 sources done, 4 s`.
  func text(after time: Duration) -> String {
    let done = done.withLock { $0 }
    let seconds = Int(time / .seconds(1))
    return total == 1 ? "working, \(seconds) s" : "\(done) of \(total) sources done, \(seconds) s"
  }
}
