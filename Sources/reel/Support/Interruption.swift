import Dispatch
import Foundation
import ReelCore
import ReelPlayback

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Ctrl-C and its like: cancel the work, so that it cleans up after itself; if that takes too long, clean up and leave.
enum Interruption {
  /// A cancelled task has so long to end.
  private static let grace = DispatchTimeInterval.milliseconds(700)

  /// Runs `body` in a task that SIGINT, SIGTERM and SIGHUP cancel. A closed pipe is an error of the write, not a
  /// signal.
  static func cancelling<Result: Sendable>(
    _ body: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    signal(SIGPIPE, SIG_IGN)
    ProcessSettings.apply()
    let task = Task { try await body() }
    let queue = DispatchQueue(label: "reel.signals")
    let sources = [SIGINT, SIGTERM, SIGHUP].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler {
        task.cancel()
        queue.asyncAfter(deadline: .now() + grace) {
          PartialFiles.removeAll()
          _exit(ExitStatus.interrupted)
        }
      }
      source.activate()
      return source
    }
    defer { for source in sources { source.cancel() } }
    return try await task.value
  }
}

extension ReelError {
  /// The error of a source that Ctrl-C has interrupted, or that was not started before.
  static let interrupted = ReelError(.cancelled, "interrupted")
}
