internal import DequeModule
internal import Dispatch
internal import Foundation
internal import ReelCore
import ReelFFmpeg
internal import ReelSources

/// Has one permit per processor, which limits how many of the open sources compute at a time.
package final class CoreGate: DecodingGate {
  /// Limits how many sources programs read at a time, each of which has a thread.
  package static let sources = CoreGate(permits: max(32, 4 * ProcessInfo.processInfo.activeProcessorCount))

  fileprivate struct State {
    /// The number of free permits; negative if more are in use than exist, after one was left to a server.
    var freeCount: Int
    /// True if one permit is to be left to a server that turns out to be on this machine.
    var leavesOne: Bool
    /// Called in order, each with a permit: first those of sources that have begun.
    var begun: Deque<@Sendable () -> Void> = []
    var others: Deque<@Sendable () -> Void> = []
    /// The recent average time that work waited for bytes and threads.
    var averageWait = Duration.zero
  }

  private let state: Locked<State>

  /// - Parameters:
  ///   - permits: Nil for one per processor.
  ///   - leavesCoreToServer: True to leave one of several processors to a server on this machine. Otherwise,
  ///     the times of a source depend on how many others its server has to answer. It costs throughput.
  package init(permits: Int? = nil, leavesCoreToServer: Bool = false) {
    let count = max(1, permits ?? ProcessInfo.processInfo.activeProcessorCount)
    state = Locked(State(freeCount: count, leavesOne: leavesCoreToServer && count > 1))
  }

  package func acquire() {
    guard !takeFree() else { return }
    let semaphore = DispatchSemaphore(value: 0)
    whenFree { semaphore.signal() }
    semaphore.wait()
  }

  package func release() {
    let next = state.withLock { state -> (@Sendable () -> Void)? in
      let next = state.freeCount < 0 ? nil : state.begun.popFirst() ?? state.others.popFirst()
      if next == nil { state.freeCount += 1 }
      return next
    }
    next?()
  }

  /// Removes a permit, once, because sources come from a server on this machine.
  func leaveCoreToServer() {
    state.withLock { state in
      guard state.leavesOne else { return }
      state.leavesOne = false
      state.freeCount -= 1
    }
  }

  /// Calls `body`, which must not block, with a permit: at once, or as soon as one is released.
  ///
  /// - Parameter hasBegun: Whether the work belongs to a source that has had a permit before.
  func whenFree(hasBegun: Bool = true, _ body: @escaping @Sendable () -> Void) {
    let isFree = state.withLock { state in
      if state.takeFree() { return true }
      if hasBegun { state.begun.append(body) } else { state.others.append(body) }
      return false
    }
    if isFree { body() }
  }

  /// Calls `body` with a permit, for which it waits. Throws the errors of `body`, or `CancellationError` as soon as the
  /// task is cancelled while it waits.
  func withPermit<Result: Sendable>(_ body: () async throws -> Result) async throws -> Result {
    let wait = TaskWait()
    try await withTaskCancellationHandler {
      whenFree { [self] in
        // The task was cancelled. As a task, because this may be called for many of them, one within the other.
        if !wait.finish(.success(())) { Task { release() } }
      }
      try await withCheckedThrowingContinuation { wait.begin($0) }
    } onCancel: {
      wait.finish(.failure(CancellationError()))
    }
    defer { release() }
    return try await body()
  }

  /// Whether work waits for a permit.
  var isContended: Bool { state.withLock { !$0.begun.isEmpty || !$0.others.isEmpty } }

  /// The time that a permit is kept in a wait before it is released: zero if waits are long.
  var keepingTime: Duration { state.withLock { $0.averageWait < Self.shortWait ? Self.longestKept : .zero } }

  func record(wait: Duration) {
    state.withLock { $0.averageWait += (min(wait, Self.longestNoted) - $0.averageWait) / 16 }
  }

  /// Longer waits are rare on loopback and local networks, and shorter ones on others.
  private static let shortWait = Duration.milliseconds(3)
  static let longestKept = Duration.milliseconds(5)
  /// The maximum recorded duration, so that one long wait does not dominate the average.
  private static let longestNoted = Duration.milliseconds(50)

  // MARK: - Private

  private func takeFree() -> Bool { state.withLock { $0.takeFree() } }
}

extension CoreGate.State {
  fileprivate mutating func takeFree() -> Bool {
    guard freeCount > 0 else { return false }
    freeCount -= 1
    return true
  }
}

/// The work of one source, among others that share the cores of a `CoreGate`.
///
/// Work begins when there is a core for it. The core is kept in short waits (`CoreGate.keepingTime`), so that
/// a source whose bytes arrive soon is opened without interruption, and released in longer ones. As a clock,
/// it stops while work waits for a core and none runs, so the times that it measures don't depend on the
/// number of other sources.
final class CoreShare: PlayerRuntime, MonotonicClock {
  /// A core that is kept for further work while no thread uses it.
  fileprivate struct Spare {
    let number: Int
    var since: Duration
    /// The call that releases it.
    var call: (any ScheduledCall)?
  }

  fileprivate struct State {
    /// The number of cores that the source has, and of those that its work waits for.
    var ownedCount = 0
    var awaitedCount = 0
    var spare: Spare?
    var spareCount = 0
    var hasEnded = false
    var queued = Duration.zero
    /// The time since which work waits and the source has no core.
    var queuedSince: Duration?
    /// The time at which a core was last received.
    var received: Duration?
    /// The working thread, the time that it had waited for cores of the system when it began, and the latest time that
    /// the clock has returned to it; nil if that is not measured.
    var thread: (id: UInt, delay: Duration, told: Duration)?
    var isMeasured = true
    /// The latest time that the clock has returned to other threads.
    var told = Duration.zero
  }

  private let cores: CoreGate
  private let base: any PlayerRuntime = SystemRuntime.shared
  private let system = SystemMonotonicClock()
  private let state = Locked(State(), rank: .clock)

  /// The time that work keeps a core that others wait for.
  private static let slice = Duration.milliseconds(50)

  private let made: Duration

  init(of cores: CoreGate) {
    self.cores = cores
    made = system.now
  }

  /// Returns the time that the source has taken since it was created, without the wait for cores, and the duration of
  /// that wait. Ends the measurement of waits that the system's scheduler causes.
  func endMeasurement() -> (total: Duration, queued: Duration) {
    state.withLock { state in
      let now = system.now
      // Threads may have waited at the same time.
      let queued = min(state.queued(at: now), now - made)
      state.settle()
      (state.thread, state.isMeasured) = (nil, false)
      return (now - made - queued, queued)
    }
  }

  /// Waits for a core, for work of tasks that begins now. Does not wait if the core would be released in the
  /// wait for a server: all sources would then begin at the same time.
  ///
  /// - Parameter fetches: Whether the source comes from a server.
  func begin(fetches: Bool) async {
    let kept = fetches ? cores.keepingTime : CoreGate.longestKept
    guard kept > .zero else { return }
    let hasBegun = join()
    await withCheckedContinuation { continuation in
      cores.whenFree(hasBegun: hasBegun) { continuation.resume() }
    }
    receive(onThread: false)
    keep(for: kept)
  }

  /// Releases the core that is kept for further work, because there is none.
  func end() {
    let spare = state.withLock { state in
      state.hasEnded = true
      return state.spare.take()
    }
    guard let spare else { return }
    spare.call?.cancel()
    giveBack()
  }

  // MARK: MonotonicClock

  var now: Duration {
    state.withLock { state in
      let now = system.now
      let own = now - state.queued(at: now)
      // Other threads don't know how long this one has waited.
      guard let thread = state.thread, thread.id == ThreadDelay.thread else {
        state.told = max(state.told, own)
        return state.told
      }
      // The scheduler's clock is not the system's: waits may be counted a little too long.
      let told = max(thread.told, own)
      state.thread?.told = told
      return told
    }
  }

  @discardableResult
  func schedule(at deadline: Duration, _ handler: @escaping @Sendable () -> Void) -> any ScheduledCall {
    system.schedule(at: deadline + state.withLock { $0.queued(at: system.now) }, handler)
  }

  // MARK: PlayerRuntime

  func run(named name: String, _ urgency: WorkUrgency, _ body: @escaping @Sendable () -> Void) {
    let work = { @Sendable [self] in
      receive()
      body()
      state.withLock { $0.settle() }
      keep(for: CoreGate.longestKept)
    }
    let spare = state.withLock { state in
      let spare = state.spare.take()
      if spare != nil {
        // Until a thread has begun, the work waits like any other.
        state.ownedCount -= 1
        state.awaitedCount += 1
        state.update(at: system.now)
      }
      return spare
    }
    if let spare {
      spare.call?.cancel()
      cores.record(wait: system.now - spare.since)
      return base.run(named: name, urgency, work)
    }
    let hasBegun = join()
    cores.whenFree(hasBegun: hasBegun) { [base] in base.run(named: name, urgency, work) }
  }

  func throwingTask<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) -> Task<Success, any Error> {
    base.throwingTask(body)
  }

  @discardableResult
  func task(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> { base.task(body) }

  func awaitedTask(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
    base.awaitedTask(body)
  }

  func makeSemaphore() -> any BlockingSemaphore { CoreSemaphore(self) }

  func recordResumption() {
    state.withLock { state in
      guard let since = state.spare?.since else { return }
      let now = system.now
      state.queued += now - since
      state.spare?.since = now
    }
  }

  var wakeLatency: Duration { base.wakeLatency }

  // MARK: - Private

  /// Waits at a semaphore, and releases the core of this thread if that takes long.
  fileprivate func wait(at semaphore: DispatchSemaphore) {
    if semaphore.wait(timeout: .now()) == .success { return }
    // Other work of the source may be the one that is waited for.
    let isAlone = state.withLock { $0.ownedCount == 1 && $0.awaitedCount == 0 }
    let (began, kept) = (system.now, isAlone ? cores.keepingTime : .zero)
    if kept > .zero, semaphore.wait(timeout: .now() + .nanoseconds(Int(kept / .nanoseconds(1)))) == .success {
      return cores.record(wait: system.now - began)
    }
    giveBack()
    semaphore.wait()
    cores.record(wait: system.now - began)
    takeCore()
  }

  private func takeCore() {
    join()
    cores.acquire()
    receive()
  }

  /// Records that work waits for a core. Returns whether the source has had one before.
  @discardableResult
  private func join() -> Bool {
    state.withLock { state in
      state.awaitedCount += 1
      state.update(at: system.now)
      return state.received != nil
    }
  }

  private func receive(onThread: Bool = true) {
    state.withLock { state in
      let now = system.now
      if onThread, state.isMeasured { state.thread = ThreadDelay.now.map { (ThreadDelay.thread, $0, .zero) } }
      state.awaitedCount -= 1
      state.ownedCount += 1
      state.received = now
      state.update(at: now)
    }
  }

  private func giveBack() {
    state.withLock { state in
      state.settle()
      state.ownedCount -= 1
      state.update(at: system.now)
    }
    cores.release()
  }

  /// Keeps the core of ended work for further work, for a time.
  private func keep(for time: Duration) {
    let number = state.withLock { state -> Int? in
      // The next work may already wait for a core: it has requested one before this one was kept.
      guard time > .zero, state.spare == nil, state.awaitedCount == 0, !state.hasEnded else { return nil }
      state.spareCount += 1
      state.spare = Spare(number: state.spareCount, since: system.now)
      return state.spareCount
    }
    guard let number else { return giveBack() }
    let call = system.schedule(at: system.now + time) { [self] in
      let isKept = state.withLock { state in
        guard state.spare?.number == number else { return false }
        state.spare = nil
        return true
      }
      guard isKept else { return }
      cores.record(wait: time)
      giveBack()
    }
    let isKept = state.withLock { state in
      guard state.spare?.number == number else { return false }
      state.spare?.call = call
      return true
    }
    if !isKept { call.cancel() }
  }
}

extension CoreShare.State {
  fileprivate func queued(at now: Duration) -> Duration {
    queued + delay + (queuedSince.map { now - $0 } ?? .zero)
  }

  /// The time that this thread has waited for cores of the system since it began to work.
  private var delay: Duration {
    guard let thread, thread.id == ThreadDelay.thread, let now = ThreadDelay.now else { return .zero }
    return max(.zero, now - thread.delay)
  }

  /// Adds that time to the time in the queue, because this thread ends its work.
  fileprivate mutating func settle() {
    queued += delay
    if thread?.id == ThreadDelay.thread { thread = nil }
  }

  /// Updates the time in the queue after a change.
  fileprivate mutating func update(at now: Duration) {
    queued += queuedSince.map { now - $0 } ?? .zero
    queuedSince = ownedCount == 0 && awaitedCount > 0 ? now : nil
  }
}

/// Gives others a turn between two calls into a decoder.
extension CoreShare: DecodingGate {
  func acquire() {
    let isLong = state.withLock { state in state.received.map { system.now - $0 > Self.slice } ?? false }
    guard isLong, cores.isContended else { return }
    giveBack()
    takeCore()
  }

  func release() {}
}

/// A semaphore at which a thread keeps its core only for a short time.
private final class CoreSemaphore: BlockingSemaphore {
  private let semaphore = DispatchSemaphore(value: 0)
  private let share: CoreShare

  init(_ share: CoreShare) { self.share = share }

  func wait() { share.wait(at: semaphore) }
  func signal() { semaphore.signal() }
}

#if canImport(Glibc)
#elseif canImport(Musl)
#elseif canImport(Darwin)
#endif

/// The processor time of the calling thread since it began.
package enum ThreadTime {
  package static var now: Duration { time(of: CLOCK_THREAD_CPUTIME_ID) }
}

/// The processor time of all threads of the process since it began.
package enum ProcessTime {
  package static var now: Duration { time(of: CLOCK_PROCESS_CPUTIME_ID) }
}

/// The time that threads wait for cores used by others.
enum ThreadDelay {
  /// A number for the calling thread.
  static var thread: UInt { UInt(bitPattern: pthread_self().hashValue) }

  /// The time that the calling thread has been ready to run, but had no core, since it began. Nil if the
  /// system does not report it.
  static var now: Duration? {
    #if os(Linux)
      let descriptor = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else { return nil }
      defer { close(descriptor) }
      // Time on a core, time in a run queue (both in nanoseconds), and a count.
      let text = String(unsafeUninitializedCapacity: 80) {
        max(0, read(descriptor, $0.baseAddress, $0.count))
      }
      let fields = text.split(separator: " ")
      return fields.count > 1 ? Int64(fields[1]).map { .nanoseconds($0) } : nil
    #else
      return nil
    #endif
  }
}

private func time(of clock: clockid_t) -> Duration {
  var time = timespec()
  guard clock_gettime(clock, &time) == 0 else { return .zero }
  return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
}
