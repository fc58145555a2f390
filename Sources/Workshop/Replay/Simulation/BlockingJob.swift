internal import ReelCore

/// Work that may block. It runs on a thread of its own, but only in its turn.
final class BlockingJob: @unchecked Sendable {
  // Sendable: `work` is used by the one thread that runs the simulation.
  let name: String
  private var work: (@Sendable () -> Void)?
  /// Given to the thread that it waits on.
  let baton = Baton()

  init(name: String, _ body: @escaping @Sendable () -> Void) {
    self.name = name
    work = body
  }

  var hasBegun: Bool { work == nil }

  /// Nil once it has begun.
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
