internal import ReelCore

/// Work that may block: it runs on a fiber, or where there are none on a thread of its own, but only while it has the
/// baton.
final class BlockingJob: Sendable {
  /// What is to be done, let go before the baton is given back: what it holds may do more as it ends.
  final class Work: Sendable {
    private let body: Locked<(@Sendable () -> Void)?>

    init(_ body: @escaping @Sendable () -> Void) { self.body = Locked(body) }

    func run() { body.withLock { $0.take() }?() }
  }

  let name: String
  private let work: Locked<Work?>
  let baton = Baton()
  /// What it runs on; nil for a thread.
  let fiber = Locked<Fiber?>(nil)

  init(name: String, _ body: @escaping @Sendable () -> Void) {
    self.name = name
    work = Locked(Work(body))
  }

  /// Nil where it has begun.
  func takeWork() -> Work? { work.withLock { $0.take() } }
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
