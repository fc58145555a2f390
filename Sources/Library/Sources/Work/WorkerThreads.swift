internal import ReelCore

/// Threads for blocking work, reused for a while. There are never more than concurrent jobs, and none after a
/// second without work.
///
/// This is not a dispatch queue, whose pool of threads is limited: work that blocks on other work would
/// exhaust it.
package final class WorkerThreads: Sendable {
  package static let shared = WorkerThreads()
  /// For work that is due at a certain time.
  package static let prompt = WorkerThreads(yieldsAtWakes: false)

  private struct Job: Sendable {
    let name: String
    let body: @Sendable () -> Void
  }

  private struct State {
    /// The most recently used thread comes last. It is taken first, so that unneeded threads end.
    var idle: [Worker] = []
    var count = 0
  }

  private let state = Locked(State())
  private let idleTime: Duration
  private let yieldsAtWakes: Bool

  /// - Parameters:
  ///   - idleTime: The time that a thread waits for more work before it ends.
  ///   - yieldsAtWakes: Whether a thread that gives work to another continues first if there is no core for
  ///     both.
  package init(idleTime: Duration = .seconds(1), yieldsAtWakes: Bool = true) {
    self.idleTime = idleTime
    self.yieldsAtWakes = yieldsAtWakes
  }

  /// The number of threads, busy or idle.
  package var count: Int { state.withLock { $0.count } }

  /// Runs `body` at once on an idle or new thread, which has the name `name` meanwhile.
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
    // The first job is passed like the later ones: a thread retains the closure that it is started with until
    // it ends.
    NativeThread.start(named: name, stackSize: Self.stackSize) { self.work(as: worker) }
  }

  // MARK: - Private

  /// The stack size. FFmpeg's decoders need a few hundred kilobytes.
  private static let stackSize = 2 << 20

  /// A thread; `job` is its next work.
  private final class Worker: Sendable {
    let job = Monitor<Job?>(nil)
  }

  private func work(as worker: Worker) {
    if yieldsAtWakes { NativeThread.yieldAtWakes() }
    var name = ""
    while runNext(of: worker, name: &name) {}
    if count == 0 { Allocator.trimFrames() }
  }

  /// Waits for a job and runs it. Returns false if none arrived. The job is released before this returns.
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
    // If another caller has taken the worker from the idle list meanwhile, a job is on its way.
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

/// Runs work that blocks (FFmpeg, waiting for bytes) outside of Swift's cooperative threads.
package enum BlockingThread {
  /// Runs `body` on its own thread of `runtime`.
  ///
  /// - Parameter cachesMemory: Whether the thread has a cache of free memory while `body` runs: for work of no account that
  ///   decodes (`Allocator.cachingForThread`).
  package static func run<Result: Sendable>(
    named name: String, on runtime: any PlayerRuntime = SystemRuntime.shared, cachesMemory: Bool = false,
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    defer { runtime.recordResumption() }
    return try await withCheckedThrowingContinuation { continuation in
      runtime.run(named: name) {
        continuation.resume(
          with: Swift.Result { cachesMemory ? try Allocator.cachingForThread(body) : try body() })
      }
    }
  }

  /// Blocks this thread until asynchronous work is done. Work that does not suspend is done on this thread. Never
  /// call it from a task.
  package static func wait<Result: Sendable>(
    scope: LoadScope, for body: @escaping @Sendable () async throws -> Result
  ) throws -> Result {
    let done = scope.runtime.makeSemaphore()
    let box = ResultBox<Result>()
    let task = scope.runtime.awaitedTask {
      do { box.set(.success(try await body())) } catch { box.set(.failure(error)) }
      done.signal()
    }
    let token = scope.onCancel { task.cancel() }
    done.wait()
    scope.forget(token)
    return try box.get()
  }
}

/// A counting semaphore, initially zero, for bodies that may block.
package protocol BlockingSemaphore: AnyObject, Sendable {
  /// Waits for a `signal()` that no other wait has used. Call it only on a thread of the `PlayerRuntime` that
  /// created it, in a body passed to its `run`, and without a lock that another body may take.
  func wait()

  /// Ends one wait, the current one or the next. Callable from anywhere.
  func signal()
}
