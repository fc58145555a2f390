import Dispatch
import Foundation
import ReelCore
import ReelPlayback

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Handles Ctrl-C and similar signals: cancels the work so that it can clean up after itself; if that takes too
/// long, removes partial files and exits.
enum Interruption {
  /// The time that a cancelled task has to end, unless another one is given.
  static let usualGrace = DispatchTimeInterval.milliseconds(700)

  /// The signal that has cancelled the work, if one has.
  private static let received = Locked<Int32?>(nil)

  /// The exit code of an interrupted run that a later one can continue. SIGTERM comes from what manages the process, and
  /// asks for another run.
  static var resumableExitCode: Int32 {
    received.withLock { $0 } == SIGTERM ? ExitStatus.mayPass : ExitStatus.interrupted
  }

  /// The pipe that the signal handler writes to. libdispatch's signal sources may miss a signal that comes while they
  /// are being set up; a byte in a pipe stays there.
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
    // Before the work begins, so that no signal ends the process meanwhile.
    for number in [SIGINT, SIGTERM, SIGHUP] { signal(number, Self.note) }
    let task = Task { try await body() }
    let queue = DispatchQueue(label: "reel.signals")
    let source = DispatchSource.makeReadSource(fileDescriptor: reader, queue: queue)
    source.setEventHandler {
      var byte: UInt8 = 0
      _ = read(pipe.reader, &byte, 1)
      let number = Int32(byte)
      received.withLock { $0 = $0 ?? number }
      // A second signal asks for an immediate end.
      let rest = task.isCancelled ? usualGrace : grace
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

  /// The signal handler. It calls nothing that is not async-signal-safe (POSIX.1-2017 §2.4.3).
  private static let note: @convention(c) (Int32) -> Void = { number in
    let code = errno
    var byte = UInt8(truncatingIfNeeded: number)
    _ = write(Interruption.pipe.writer, &byte, 1)
    errno = code
  }
}

/// Calls `pipe(2)`. A global function, because members hide the name.
private func makePipe(_ ends: inout [Int32]) -> Int32 { pipe(&ends) }

extension ReelError {
  /// The error of a source that Ctrl-C has interrupted, or that was not started before.
  static let interrupted = ReelError(.cancelled, "interrupted")
}
