internal import Dispatch
internal import Foundation

/// Runs work that blocks (FFmpeg, waiting for bytes) away from Swift's cooperative threads.
enum BlockingThread {
  /// Runs `body` on a thread of its own, which ends with it.
  static func run<Result: Sendable>(
    named name: String, _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      // Not a dispatch queue: its pool of threads is bounded, and work that blocks for others would exhaust it.
      let thread = Thread {
        continuation.resume(with: Swift.Result { try body() })
      }
      thread.name = "reel.\(name)"
      thread.stackSize = stackSize
      thread.start()
    }
  }

  /// FFmpeg's decoders need a few hundred kilobytes.
  private static let stackSize = 2 << 20

  /// Waits on this thread for asynchronous work; never to be called from a task.
  static func wait<Result: Sendable>(
    scope: LoadScope, for body: @escaping @Sendable () async throws -> Result
  ) throws -> Result {
    let done = DispatchSemaphore(value: 0)
    let box = ResultBox<Result>()
    let task = Task {
      do { box.set(.success(try await body())) } catch { box.set(.failure(error)) }
      done.signal()
    }
    let token = scope.onCancel { task.cancel() }
    done.wait()
    scope.forget(token)
    return try box.get()
  }
}
