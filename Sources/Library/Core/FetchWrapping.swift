// Shared by fetchers that wrap another fetcher.

extension FetchRequest {
  /// Passes the metrics to `note` before the request's own handler gets them.
  package mutating func addReport(_ note: @escaping @Sendable (RequestMetrics) -> Void) {
    let report = report
    self.report = { metrics in
      note(metrics)
      report?(metrics)
    }
  }

  /// Passes each failed attempt to `note` before the request's own handler gets it.
  package mutating func addFailedAttempt(_ note: @escaping @Sendable (ReelError) -> Void) {
    let noteFailedAttempt = noteFailedAttempt
    self.noteFailedAttempt = { error in
      note(error)
      noteFailedAttempt?(error)
    }
  }
}

extension FetchResponse {
  /// The response with a body whose chunks are pulled out of its own by `pull`.
  package func wrappingBody(
    onEnd: FetchBody.EndHandler? = nil, _ pull: @escaping @Sendable (FetchBody) async throws -> [UInt8]?
  ) -> FetchResponse {
    var response = self
    let body = body
    let next = { @Sendable in try await pull(body) }
    response.body = onEnd.map { FetchBody(onEnd: $0, pull: next) } ?? FetchBody(pull: next)
    return response
  }
}

extension FetchBody {
  /// Called once with the result of a body: success after its last chunk, or an error, which is
  /// `CancellationError` if the body was released before its end.
  package typealias EndHandler = @Sendable (Result<Void, any Error>) -> Void

  /// - Parameters:
  ///   - onEnd: Called before the captures of `pull` are released.
  ///   - pull: Returns the next chunk, never an empty one, or nil at the end.
  package init(onEnd: @escaping EndHandler, pull: @escaping @Sendable () async throws -> [UInt8]?) {
    let body = EndingBody(onEnd: onEnd, pull: pull)
    self.init { try await body.next() }
  }

  /// The next chunk; nil at the end.
  package func next() async throws -> [UInt8]? {
    var iterator = makeAsyncIterator()
    return try await iterator.next()
  }
}

/// A body that reports its end. If it is pulled again after that, it ends in the same way.
private final class EndingBody: Sendable {
  private enum State {
    case open(FetchBody.EndHandler)
    case ended(Result<Void, any Error>)
  }

  private let pull: @Sendable () async throws -> [UInt8]?
  private let state: Locked<State>

  init(onEnd: @escaping FetchBody.EndHandler, pull: @escaping @Sendable () async throws -> [UInt8]?) {
    self.pull = pull
    state = Locked(.open(onEnd))
  }

  deinit { end(.failure(CancellationError())) }

  func next() async throws -> [UInt8]? {
    if case .ended(let result) = state.withLock({ $0 }) {
      try result.get()
      return nil
    }
    do {
      let chunk = try await pull()
      if chunk == nil { end(.success(())) }
      return chunk
    } catch {
      end(.failure(error))
      throw error
    }
  }

  private func end(_ result: Result<Void, any Error>) {
    let onEnd = state.withLock { state -> FetchBody.EndHandler? in
      guard case .open(let onEnd) = state else { return nil }
      state = .ended(result)
      return onEnd
    }
    onEnd?(result)
  }
}
