import Dispatch

/// Runs work that blocks (FFmpeg, waiting for bytes) away from Swift's cooperative threads.
enum BlockingThread {
  /// Runs `body` on a thread of its own, which goes back to the system's pool when it ends.
  static func run<Result: Sendable>(
    named name: String, _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      // A serial queue of its own gets a thread of its own, also where others block.
      DispatchQueue(label: "reel.\(name)").async {
        continuation.resume(with: Swift.Result { try body() })
      }
    }
  }

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
