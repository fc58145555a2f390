/// The limits and habits of a `TransportFetcher`.
public struct TransportConfiguration: Sendable, Hashable {
  /// The longest time until a connection is there, its TLS handshake included.
  public var connectTimeout: Duration
  /// The longest time from a request that was sent to the head of its answer.
  public var firstByteTimeout: Duration
  /// The longest time that a body may stand still while more of it is awaited.
  public var idleTimeout: Duration
  public var retryPolicy: RetryPolicy
  /// How many redirects in a row are followed.
  public var maximumRedirects: Int
  public var userAgent: String
  /// How many connections are opened ahead beside one that fetches a manifest or a source of unknown kind, so
  /// that what the manifest names can be asked for in parallel without waiting for a connection.
  public var connectionsAhead: Int

  public init(
    connectTimeout: Duration = .seconds(10), firstByteTimeout: Duration = .seconds(10),
    idleTimeout: Duration = .seconds(10), retryPolicy: RetryPolicy = RetryPolicy(),
    maximumRedirects: Int = 10,
    userAgent: String = "reel/0.1", connectionsAhead: Int = 1
  ) {
    self.connectTimeout = connectTimeout
    self.firstByteTimeout = firstByteTimeout
    self.idleTimeout = idleTimeout
    self.retryPolicy = retryPolicy
    self.maximumRedirects = maximumRedirects
    self.userAgent = userAgent
    self.connectionsAhead = connectionsAhead
  }
}
