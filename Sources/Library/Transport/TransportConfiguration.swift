/// The time limits and options of a `TransportFetcher`.
public struct TransportConfiguration: Sendable, Hashable {
  /// The maximum time to open a connection, including the TLS handshake.
  public var connectTimeout: Duration
  /// The maximum time from sending a request to receiving the head of its answer.
  public var firstByteTimeout: Duration
  /// The maximum time to wait for more of a body. Time in which the consumer does not read is not counted.
  public var idleTimeout: Duration
  /// The rules for retries.
  public var retryPolicy: RetryPolicy
  /// The maximum number of consecutive redirects.
  public var maximumRedirects: Int
  /// The value of the `User-Agent` header field.
  public var userAgent: String
  /// The number of additional connections to open while fetching a manifest or a source of unknown format. The
  /// resources that the manifest names can then be fetched in parallel without waiting for a connection.
  public var connectionsAhead: Int
  /// The proxies; by default none. The environment is not read, unless you pass it to
  /// ``HTTPProxies/init(environment:)``.
  public var proxies = HTTPProxies()
  /// The accepted certificates of `https` servers.
  public var trust = ServerTrust.system
  /// The cookies that requests carry, unless a request has a `Cookie` header field of its own.
  public var cookies: CookieFile?

  /// Creates a configuration.
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
