internal import ReelFFmpeg

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

  /// Blocks this thread until asynchronous work is done. Never call it from a task.
  static func wait<Result: Sendable>(
    scope: LoadScope, for body: @escaping @Sendable () async throws -> Result
  ) throws -> Result {
    let done = scope.runtime.makeSemaphore()
    let box = ResultBox<Result>()
    let task = scope.runtime.task {
      do { box.set(.success(try await body())) } catch { box.set(.failure(error)) }
      done.signal()
    }
    let token = scope.onCancel { task.cancel() }
    done.wait()
    scope.forget(token)
    return try box.get()
  }
}
