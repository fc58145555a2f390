// What fetchers that go by way of another fetcher have in common.

extension FetchRequest {
  /// Tells the metrics to `note` as well, before the one who asked for them.
  package mutating func addReport(_ note: @escaping @Sendable (RequestMetrics) -> Void) {
    let report = report
    self.report = { metrics in
      note(metrics)
      report?(metrics)
    }
  }
}

extension FetchResponse {
  /// The response with a body whose chunks are pulled out of its own by `pull`.
  ///
  /// - Parameter onRelease: Called when the new body is let go, before the old one is.
  package func wrappingBody(
    onRelease: (@Sendable () -> Void)? = nil, _ pull: @escaping @Sendable (FetchBody) async throws -> [UInt8]?
  ) -> FetchResponse {
    var response = self
    let body = body
    response.body = FetchBody(onRelease: onRelease) { try await pull(body) }
    return response
  }
}

extension FetchBody {
  /// - Parameters:
  ///   - onRelease: Called when the body is let go, at its end or before.
  ///   - pull: Gives the next chunk, never an empty one, or nil at the end.
  package init(onRelease: (@Sendable () -> Void)?, pull: @escaping @Sendable () async throws -> [UInt8]?) {
    guard let onRelease else {
      self.init(pull: pull)
      return
    }
    let holder = Holder(pull: pull, onRelease: onRelease)
    self.init { try await holder.pull() }
  }

  /// The next chunk; nil at the end.
  package func next() async throws -> [UInt8]? {
    var iterator = makeAsyncIterator()
    return try await iterator.next()
  }

  private final class Holder: Sendable {
    let pull: @Sendable () async throws -> [UInt8]?
    let onRelease: @Sendable () -> Void

    init(pull: @escaping @Sendable () async throws -> [UInt8]?, onRelease: @escaping @Sendable () -> Void) {
      self.pull = pull
      self.onRelease = onRelease
    }

    // What `pull` holds is released after this.
    deinit { onRelease() }
  }
}
