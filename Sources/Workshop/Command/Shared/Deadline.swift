import Dispatch
import Foundation
import ReelCore
import ReelFiles
import ReelPool
import ReelReading
import ReelSources

/// Runs `body`, and cancels it when the time is up, unless it has lifted the limit. A result that it returns nevertheless
/// counts.
///
/// - Parameter body: Receives the fetcher to use instead of `fetcher`, and a closure that lifts the limit.
///
/// Throws the error of `body`, or `ReelError.timedOut`, which names the last failure of `fetcher`.
func withLimit<Result: Sendable>(
  seconds: Double, source: String, fetcher: any Fetching,
  _ body:
    @escaping @Sendable (_ fetcher: any Fetching, _ lift: @escaping @Sendable () -> Void) async throws ->
    Result
) async throws -> Result {
  let traffic = TrafficCounter(fetcher)
  let isLifted = Locked(false)
  let isLate = Locked(false)
  return try await withThrowingTaskGroup(of: Result?.self) { group in
    group.addTask {
      try await body(traffic) { isLifted.withLock { $0 = true } }
    }
    group.addTask {
      // Task.sleep(for:) keeps its memory until its time has expired, even if the task was cancelled long
      // before.
      let clock = SystemMonotonicClock()
      do {
        try await clock.sleep(for: .seconds(seconds))
        while isLifted.withLock({ $0 }) { try await clock.sleep(for: .seconds(86_400)) }
        isLate.withLock { $0 = true }
      } catch {}
      return nil
    }
    do {
      while let outcome = try await group.next() {
        group.cancelAll()
        if let result = outcome { return result }
      }
      throw CancellationError()
    } catch {
      group.cancelAll()
      guard isLate.withLock({ $0 }) else { throw error }
      throw ReelError(
        lateness: "not finished within \(DurationText.readable(.seconds(seconds)))", of: source,
        after: traffic.lastFailure)
    }
  }
}

/// The same for work with an opener: `body` receives the one to use instead.
func withLimit<Result: Sendable>(
  seconds: Double, source: String, opener: TrackOpener,
  _ body: @escaping @Sendable (TrackOpener, _ lift: @escaping @Sendable () -> Void) async throws -> Result
) async throws -> Result {
  try await withLimit(seconds: seconds, source: source, fetcher: opener.fetcher) { fetcher, lift in
    var opener = opener
    opener.fetcher = fetcher
    return try await body(opener, lift)
  }
}

extension ReelError {
  /// The error when the time for a source has expired.
  ///
  /// - Parameters:
  ///   - reason: The event that did not happen in time.
  ///   - failure: The last failure that was retried; nil if there was none.
  init(lateness reason: String, of source: String, after failure: ReelError?) {
    var reason = reason
    if let failure {
      reason += ": " + (failure.status == nil ? "" : "the server answered ") + failure.reason
      if let location = failure.location, location != source { reason += " (\(location))" }
    }
    self.init(
      .timedOut, reason, at: source, advice: failure?.advice ?? Self.moreTime)
  }

  /// The advice for a source that is merely slow.
  static let moreTime = "allow more time with --timeout"
}

/// Handles Ctrl-C and similar signals: cancels the work so that it can clean up after itself; if that takes too
/// long, removes partial files and exits.
enum Interruption {
  /// The default time for a cancelled task to end. On a busy machine, it takes seconds to write a summary. Engines wait 5 s
  /// or longer after SIGTERM before they kill a process.
  static let usualGrace = DispatchTimeInterval.seconds(4)
  /// The time after a second signal.
  private static let lastGrace = DispatchTimeInterval.milliseconds(700)

  /// The signal that has cancelled the work, if one has.
  private static let received = Locked<Int32?>(nil)

  /// The exit code of an interrupted run that a later one can continue. SIGTERM comes from a process manager,
  /// and requests another run.
  static var resumableExitCode: Int32 {
    received.withLock { $0 } == SIGTERM ? ExitStatus.mayPass : ExitStatus.interrupted
  }

  /// The pipe that the signal handler writes to. libdispatch's signal sources may miss a signal that arrives
  /// while they are being set up; a byte in a pipe remains there.
  private static let pipe: (reader: Int32, writer: Int32) = {
    var ends: [Int32] = [-1, -1]
    guard makePipe(&ends) == 0 else { return (-1, -1) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (ends[0], ends[1])
  }()

  /// Runs `body` in a task that SIGINT, SIGTERM and SIGHUP cancel. A closed pipe is an error of the write, not a
  /// signal.
  ///
  /// - Parameters:
  ///   - grace: The time that the cancelled task has to end.
  ///   - isResumable: Whether a later run can continue the work.
  static func cancelling<Result: Sendable>(
    within grace: DispatchTimeInterval = usualGrace, isResumable: Bool = false,
    _ body: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    signal(SIGPIPE, SIG_IGN)
    ProcessSettings.apply()
    // Create the pipe now, so that the signal handler does not have to.
    let reader = pipe.reader
    // Before the work begins, so that no signal ends the process in between.
    for number in [SIGINT, SIGTERM, SIGHUP] { signal(number, Self.record) }
    let task = Task { try await body() }
    let queue = DispatchQueue(label: "reel.signals")
    let source = DispatchSource.makeReadSource(fileDescriptor: reader, queue: queue)
    source.setEventHandler {
      var byte: UInt8 = 0
      _ = read(pipe.reader, &byte, 1)
      let number = Int32(byte)
      received.withLock { $0 = $0 ?? number }
      // A second signal requests an immediate end.
      let rest = task.isCancelled ? lastGrace : grace
      task.cancel()
      queue.asyncAfter(deadline: .now() + rest) {
        PartialFiles.removeAll()
        _exit(isResumable ? resumableExitCode : ExitStatus.interrupted)
      }
    }
    source.activate()
    defer { source.cancel() }
    return try await task.value
  }

  /// The signal handler. It calls only functions that are async-signal-safe (POSIX.1-2017 §2.4.3).
  private static let record: @convention(c) (Int32) -> Void = { number in
    let code = errno
    var byte = UInt8(truncatingIfNeeded: number)
    _ = write(Interruption.pipe.writer, &byte, 1)
    errno = code
  }
}

/// Calls `pipe(2)`. A global function, because members hide the name.
private func makePipe(_ ends: inout [Int32]) -> Int32 { pipe(&ends) }

extension ReelError.Kind {
  /// Ctrl-C has interrupted the work.
  static let cancelled = ReelError.Kind(rawValue: "cancelled")
}

extension ReelError {
  /// The error of a source that Ctrl-C has interrupted, or that was not started before.
  static let interrupted = ReelError(.cancelled, "interrupted")
}
