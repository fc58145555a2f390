internal import ReelCore

/// Threads for work that blocks, kept a while for the next work: at most as many as there is work at once, none after
/// a second without any.
///
/// Not a dispatch queue: its pool of threads is bounded, and work that blocks for others would exhaust it.
package final class WorkerThreads: Sendable {
  package static let shared = WorkerThreads()
  /// For work that is due at a time.
  package static let prompt = WorkerThreads(yieldsAtWakes: false)

  private struct Job: Sendable {
    let name: String
    let body: @Sendable () -> Void
  }

  private struct State {
    /// The one that was busy last at the end: it is taken first, so that those which are not needed end.
    var idle: [Worker] = []
    var count = 0
  }

  private let state = Locked(State())
  private let idleTime: Duration
  private let yieldsAtWakes: Bool

  /// - Parameters:
  ///   - idleTime: How long a thread waits for more work before it ends.
  ///   - yieldsAtWakes: Who gives work to a thread goes on before it, where there is no core for both.
  package init(idleTime: Duration = .seconds(1), yieldsAtWakes: Bool = true) {
    self.idleTime = idleTime
    self.yieldsAtWakes = yieldsAtWakes
  }

  /// Threads that there are, busy or idle.
  package var count: Int { state.withLock { $0.count } }

  /// Runs `body` on a thread that has nothing else to do, at once; the thread has the name while it does.
  package func run(named name: String = "work", _ body: @escaping @Sendable () -> Void) {
    let name = "reel.\(name)"
    let job = Job(name: name, body: body)
    let (worker, isNew) = state.withLock { state in
      if let worker = state.idle.popLast() { return (worker, false) }
      state.count += 1
      return (Worker(), true)
    }
    worker.job.withLock { $0 = job }
    guard isNew else { return worker.job.signal() }
    // The thread gets its first work as it gets the rest: what it is started with, it holds until it ends.
    NativeThread.start(named: name, stackSize: Self.stackSize) { self.work(as: worker) }
  }

  // MARK: - Private

  /// FFmpeg's decoders need a few hundred kilobytes.
  private static let stackSize = 2 << 20

  /// A thread: `job` is what it has been given to do next.
  private final class Worker: Sendable {
    let job = Monitor<Job?>(nil)
  }

  private func work(as worker: Worker) {
    if yieldsAtWakes { NativeThread.yieldAtWakes() }
    var name = ""
    while runNext(of: worker, name: &name) {}
  }

  /// Waits for work and does it. False where none has come. What the work holds is let go before this returns.
  private func runNext(of worker: Worker, name: inout String) -> Bool {
    guard let job = nextJob(of: worker) else { return false }
    if job.name != name {
      name = job.name
      NativeThread.setName(name)
    }
    job.body()
    return true
  }

  private func nextJob(of worker: Worker) -> Job? {
    if let first = worker.job.withLock({ $0.take() }) { return first }
    state.withLock { $0.idle.append(worker) }
    let end = SystemMonotonicClock().now + idleTime
    if let job = wait(worker, until: end) { return job }
    let hasLeft = state.withLock { state in
      guard let index = state.idle.firstIndex(where: { $0 === worker }) else { return false }
      state.idle.remove(at: index)
      state.count -= 1
      return true
    }
    // Where it has been taken from the idle ones in the meantime, a job is on its way.
    return hasLeft ? nil : wait(worker, until: nil)
  }

  private func wait(_ worker: Worker, until end: Duration?) -> Job? {
    worker.job.wait { job -> Monitor<Job?>.Step<Job?> in
      if let next = job.take() { return .end(next) }
      if let end, SystemMonotonicClock().now >= end { return .end(nil) }
      return .wait(until: end)
    }
  }
}
