public import Foundation
internal import HTTPTypes
public import Logging
public import ReelCore

/// Fetches bytes over HTTP and HTTPS, from local files, and from `data:` URLs (RFC 2397).
///
/// All fetchers in a process with the same `connectTimeout` share one pool of connections. HTTP/2 is used if a server
/// offers it over TLS.
///
/// The fetcher retries requests after temporary failures, by the `RetryPolicy`: refused and lost connections,
/// names that can't be looked up for now, and the statuses of `ReelError.isTemporary`. Other failures are
/// thrown at once. It resumes a broken transfer at the byte where it broke. If a server sends only a part of
/// a range, it requests the rest (RFC 9110 §15.3.7); the consumer of the body does not notice.
///
/// These requests repeat the header fields of the first. If they can expire, as tokens do, use `RetryPolicy.never`: the
/// player then repeats what is missing with a request of its own, through the fetcher that adds the token.
public final class TransportFetcher: Fetching, ConnectionOpening, AgentNaming {
  private let http: HTTPFetcher
  private let file: FileFetcher
  package let userAgent: String
  /// Called with each finished request; nil if nobody wants to know.
  private let record: (@Sendable (RequestMetrics) -> Void)?

  /// Creates a fetcher. It opens connections as needed.
  ///
  /// - Parameters:
  ///   - configuration: Time limits and options.
  ///   - logger: Receives requests, answers and retries at level `debug`.
  ///   - onRequest: Called with each request over HTTP(S) that has ended, whether it succeeded, failed or was
  ///     cancelled, on any thread. Must not block.
  public convenience init(
    configuration: TransportConfiguration = TransportConfiguration(),
    logger: Logger = Logger(label: "reel.transport"), onRequest: (@Sendable (RequestMetrics) -> Void)? = nil
  ) {
    self.init(configuration: configuration, recordRetryAfter: nil, logger: logger, onRequest: onRequest)
  }

  /// The connections that a fetcher uses.
  package enum Connections: Sendable {
    /// Those that the fetchers of the process share.
    case shared
    /// Connections that only this fetcher uses, as those of a program on another machine. They are closed when the
    /// fetcher and its transfers have ended.
    case own
  }

  /// Decides whether a request may be sent. It is called with the host of the request's URL, in lower case, and the
  /// address that the connection leads to: nil through a proxy, which alone knows it. Throws the error of the request.
  ///
  /// It is called on the thread of the connection, once this is open and before anything of the request is sent. Must
  /// not block.
  package typealias Admission = @Sendable (_ host: String, _ address: PeerAddress?) throws(ReelError) -> Void

  /// - Parameters:
  ///   - connections: The connections to use.
  ///   - admission: Called before each request is sent, those of redirects and retries included.
  ///   - recordRetryAfter: Called with the URL of a request and the delay that its server asks for (`Retry-After`),
  ///     whether the request is retried or not. Must not block.
  package init(
    configuration: TransportConfiguration, connections: Connections = .shared, admission: Admission? = nil,
    recordRetryAfter: (@Sendable (URL, Duration) -> Void)?, logger: Logger,
    onRequest: (@Sendable (RequestMetrics) -> Void)? = nil
  ) {
    let counters = RequestCounters()
    if counters == nil {
      record = onRequest
    } else {
      record = { metrics in
        counters?.record(metrics)
        onRequest?(metrics)
      }
    }
    userAgent = configuration.userAgent
    let clients =
      switch connections {
      case .shared: HTTPConnections.shared
      case .own: HTTPConnections()
      }
    http = HTTPFetcher(
      configuration: configuration, connections: clients, admission: admission,
      recordRetryAfter: recordRetryAfter, logger: logger)
    file = FileFetcher(logger: logger)
  }

  /// Runs `body` once on each thread that serves the connections of all fetchers.
  package static func onEachThread(_ body: @escaping @Sendable () -> Void) {
    HTTPConnections.onEachThread(body)
  }

  /// Opens a connection to the host of an `http` or `https` URL unless one is idle. Returns at once; failures are not
  /// reported.
  public func openConnection(to url: URL) {
    if ["http", "https"].contains(url.scheme?.lowercased()) { http.openConnection(to: url) }
  }

  /// Sends a request and returns once the head of a successful answer has arrived.
  ///
  /// The scheme of the URL must be `http`, `https`, `file` or `data`. Redirects lead to `http` and `https` only.
  ///
  /// - Throws: `CancellationError`, or `ReelError` with the URL as its location. The body throws the same errors. The
  ///   kinds are:
  ///   - `server`: a status other than success, such as `404 Not Found`; an invalid answer; an invalid redirect.
  ///   - `network`: no address for the host, no connection, a TLS failure, or a connection that broke after
  ///     all retries. For a certificate that is not accepted, the reason says why: it has expired or is not
  ///     yet valid, is for another host, is self-signed, or has an unknown issuer.
  ///   - `timedOut`: a time limit expired. The reason names it.
  ///   - `noSuchFile`: a local file does not exist or can't be read.
  ///   - `badMedia`: the path is a directory, the `data:` URL is malformed, or the range begins after the end of the
  ///     local file or `data:` URL. A body also throws it if the file shrinks meanwhile.
  ///   - `unsupported`: another scheme, or a range of a pipe.
  ///   - `usage`: an invalid range, or a URL or header field that can't be sent.
  public func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    if let range = request.range, range.offset < 0 || range.length.map({ $0 <= 0 }) ?? false {
      throw ReelError(
        .usage, "not a range of a resource: offset \(range.offset), length \(range.length ?? 0)",
        at: request.url.absoluteString)
    }
    guard request.method == .get || request.method == .head else {
      throw ReelError(
        .usage, "the method \(request.method.rawValue) is not supported", at: request.url.absoluteString)
    }
    switch request.url.scheme?.lowercased() {
    case "http", "https":
      var request = request
      if let record { request.addReport(record) }
      return try await http.fetch(request)
    case "file": return try await file.fetch(request)
    case "data": return try await DataFetcher().fetch(request)
    case let scheme:
      throw ReelError(
        .unsupported, scheme.map { "the scheme \($0): is not served" } ?? "a URL without a scheme",
        at: request.url.absoluteString, advice: "use http:, https: or file:")
    }
  }
}

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
  package var connectionsAhead: Int
  /// The number of bytes of a body that are held until they are taken. The connection is not read further then.
  package var readAheadByteCount = 64 << 10
  /// The maximum time for the rest of an unwanted body, after which its connection is closed.
  package var drainTimeout = Duration.milliseconds(100)
  /// The proxies; by default none. The environment is not read, unless you pass it to
  /// ``HTTPProxies/init(environment:)``.
  public var proxies = HTTPProxies()
  /// The accepted certificates of `https` servers.
  public var trust = ServerTrust.system
  /// The cookies that requests carry at first, unless a request has a `Cookie` header field of its own. Each fetcher keeps in
  /// memory the cookies that servers set, and sends them back as a browser does (RFC 6265).
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
