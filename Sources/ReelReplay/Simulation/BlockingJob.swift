internal import ReelCore

/// Work that may block: it runs on a fiber, or where there are none on a thread of its own, but only while it has the
/// baton.
final class BlockingJob: @unchecked Sendable {
  // Sendable: `work` and `fiber` are used by the one that drives the simulation, or by the work itself while it runs.
  let name: String
  private var work: (@Sendable () -> Void)?
  let baton = Baton()
  /// What it runs on; nil for a thread.
  var fiber: Fiber?

  init(name: String, _ body: @escaping @Sendable () -> Void) {
    self.name = name
    work = body
  }

  /// Nil where it has begun.
  func takeWork() -> (@Sendable () -> Void)? { work.take() }
}

/// Lets one thread that waits for it go on.
final class Baton: Sendable {
  private let isThere = Monitor(false)

  func give() {
    isThere.withLock { $0 = true }
    isThere.signal()
  }

  /// Returns when the baton has been given, and takes it.
  func take() {
    isThere.wait { isThere -> Monitor<Bool>.Step<Void> in
      guard isThere else { return .wait(until: nil) }
      isThere = false
      return .end(())
    }
  }
}
