import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOHTTPCompression
import NIOPosix
import ReelCore

/// The reason why a request, or the body of its response, failed.
enum TransferFailure: Error {
  /// The kind of time limit.
  enum Limit: String {
    case connect
    case firstByte
    case idle
  }

  /// The host name has no address.
  case noSuchHost(String)
  /// The host name could not be looked up.
  case lookup(host: String)
  /// No connection: refused or unreachable.
  case noConnection(reason: String)
  /// The proxy did not open a tunnel.
  case proxy(reason: String, advice: String, isTemporary: Bool)
  /// No TLS connection, or TLS where HTTP was expected.
  case tls(reason: String, advice: String? = nil)
  /// The server's certificate is not accepted.
  case certificate(CertificateFault)
  case timedOut(Limit, after: Duration)
  /// The connection was closed or lost before the response was complete.
  case connectionLost(reason: String)
  /// A new connection has another HTTP version than earlier ones, so the request was not sent.
  case versionChanged
  /// A status that may be temporary.
  case status(Int, retryAfter: Duration?)
  /// The response is not HTTP, or contradicts itself or the request. It has a status if its head was
  /// readable.
  case malformed(reason: String, status: Int? = nil)
  /// The compressed data of the response, which had this status, is damaged or unreasonably large.
  case encoding(reason: String, status: Int?)
  /// The request must not be sent to the address of its host.
  case notAdmitted(ReelError)
  /// The request can't be sent.
  case invalidRequest(reason: String)

  /// Classifies errors of AsyncHTTPClient and SwiftNIO.
  ///
  /// - Parameter status: The status of the response; nil before its head.
  init(_ error: any Error, host: String, connectTimeout: Duration, status: Int? = nil) {
    switch error {
    case let failure as TransferFailure: self = failure
    case let error as HTTPClientError: self.init(client: error, connectTimeout: connectTimeout)
    case let error as NIOConnectionError:
      self.init(connection: error, host: host, connectTimeout: connectTimeout)
    case ChannelError.connectTimeout: self = .timedOut(.connect, after: connectTimeout)
    case let error as IOError: self.init(io: error)
    case let error as HTTPParserError: self.init(parser: error)
    case is NIOHTTPDecompression.DecompressionError, is NIOHTTPDecompression.ExtraDecompressionError:
      self =
        error as? NIOHTTPDecompression.DecompressionError == .limit
        ? .encoding(
          reason:
            "its compressed data expands to more than \(HTTPConnections.maximumInflatedByteCount) bytes",
          status: status)
        : .encoding(reason: "its compressed data is damaged", status: status)
    // A connection that closes while it is set up has no handlers.
    case is ChannelError, is ChannelPipelineError: self = .connectionLost(reason: "connection closed")
    default:
      // NIOSSL's errors are recognised by the names of their types, which avoids linking it just for this.
      let type = String(reflecting: Swift.type(of: error))
      if type.contains("NIOSSL") || type.contains("BoringSSL") || type.contains("NIOTLS") {
        self.init(tls: String(describing: error))
      } else {
        self = .connectionLost(reason: String(describing: error))
      }
    }
  }

  /// True if the same request may succeed later. Of the three time limits only `idle` counts: a request without
  /// a response in time is not repeated.
  var isTransient: Bool {
    switch self {
    case .noConnection, .lookup, .connectionLost, .versionChanged, .status: true
    case .timedOut(let limit, _): limit == .idle
    case .noSuchHost, .proxy, .tls, .certificate, .malformed, .encoding, .notAdmitted,
      .invalidRequest:
      false
    }
  }

  /// True if it may come from a server that expects a range in each request: its program ends with an error, or closes the
  /// connection.
  var mayLackRange: Bool {
    switch self {
    case .status(500, _), .connectionLost: true
    default: false
    }
  }

  /// True if no connection was opened.
  var isConnectFailure: Bool {
    switch self {
    case .noConnection, .lookup: true
    default: false
    }
  }

  var retryAfter: Duration? {
    if case .status(_, let retryAfter) = self { return retryAfter }
    return nil
  }

  /// The status of the answer; nil without one, or if its body failed.
  var status: Int? {
    switch self {
    case .status(let status, _): status
    case .malformed(_, let status), .encoding(_, let status): status
    default: nil
    }
  }

  /// Returns the error for the caller, after `requestCount` requests, the last one through `proxy`.
  func reelError(at url: URL, requestCount: Int, proxy: HTTPProxies.Proxy? = nil) -> ReelError {
    let location = url.absoluteString
    let times = requestCount > 1 ? " (\(requestCount) requests)" : ""
    switch self {
    case .noSuchHost, .lookup, .noConnection:
      guard let proxy else { break }
      var isTemporary = true
      if case .noSuchHost = self { isTemporary = false }
      return ReelError(
        .network, "no connection to the proxy \(proxy.host):\(proxy.port)", at: location,
        advice: "check http_proxy, https_proxy and no_proxy", isTemporary: isTemporary)
    default: break
    }
    switch self {
    case .proxy(let reason, let advice, let isTemporary):
      return ReelError(.network, reason, at: location, advice: advice, isTemporary: isTemporary)
    case .noSuchHost(let host):
      return ReelError(
        .network, "no such host: no address for \(host)", at: location, advice: "check the host name",
        isTemporary: false)
    case .lookup(let host):
      return ReelError(
        .network, "the name \(host) can't be resolved at the moment", at: location,
        advice: "check the network")
    case .noConnection(let reason):
      return ReelError(
        .network, reason, at: location, advice: "check that the server is running and reachable")
    case .tls(let reason, let advice):
      return ReelError(.network, reason, at: location, advice: advice, isTemporary: false)
    case .certificate(let fault):
      return ReelError(
        .network, fault.reason, at: location, advice: fault.advice(host: url.host() ?? ""), isTemporary: false
      )
    case .timedOut(let limit, let time):
      let seconds = (time / .milliseconds(1)).rounded() / 1000
      let span = seconds == seconds.rounded() ? "\(Int(seconds)) s" : "\(seconds) s"
      switch limit {
      case .connect: return ReelError(.timedOut, "no connection within \(span)", at: location)
      case .firstByte: return ReelError(.timedOut, "no response within \(span)", at: location)
      case .idle: return ReelError(.timedOut, "no more data within \(span)\(times)", at: location)
      }
    case .connectionLost(let reason):
      return ReelError(.network, reason + times, at: location)
    case .versionChanged:
      return ReelError(.network, "the server changed its HTTP version" + times, at: location)
    case .status(let code, let retryAfter):
      let advice = retryAfter.map {
        "the server asks to come back in \(Int(($0 / .seconds(1)).rounded(.up))) s"
      }
      var error = ReelError(
        .server, Self.statusText(code) + times, at: location, advice: advice, status: code)
      error.retryAfter = retryAfter
      return error
    case .malformed(let reason, let status), .encoding(let reason, let status):
      return ReelError(.server, reason, at: location, status: status)
    case .notAdmitted(var error):
      error.location = error.location ?? location
      return error
    case .invalidRequest(let reason):
      return ReelError(.usage, reason, at: location)
    }
  }

  /// `404 Not Found`.
  static func statusText(_ code: Int) -> String {
    let phrase = HTTPResponseStatus(statusCode: code).reasonPhrase
    return phrase.isEmpty ? "status \(code)" : "\(code) \(phrase)"
  }

  // MARK: - Private

  private init(client error: HTTPClientError, connectTimeout: Duration) {
    switch error {
    case .connectTimeout, .getConnectionFromPoolTimeout, .tlsHandshakeTimeout:
      self = .timedOut(.connect, after: connectTimeout)
    // `cancelled`: the server ended the connection before the request was sent. One that is cancelled here has ended.
    case .remoteConnectionClosed, .cancelled:
      self = .connectionLost(reason: "connection closed by the server")
    case .proxyAuthenticationRequired:
      self = .proxy(
        reason: "the proxy requires a user name and password, or refused them",
        advice: "write them as http://user:password@proxy.example:3128", isTemporary: false)
    case .invalidProxyResponse:
      self = .proxy(
        reason: "the proxy refused to open a tunnel",
        advice:
          "it may not allow CONNECT to this host or port; name the host in no_proxy to reach it directly",
        isTemporary: true)
    case .httpProxyHandshakeTimeout: self = .timedOut(.connect, after: connectTimeout)
    case .invalidURL, .emptyHost, .emptyScheme:
      self = .invalidRequest(reason: "the URL can't be requested")
    default:
      let text = error.shortDescription
      self =
        text.hasPrefix("Invalid header")
        ? .invalidRequest(reason: "a header field has characters that can't be sent")
        : .connectionLost(reason: text.prefix(1).lowercased() + text.dropFirst())
    }
  }

  private init(connection error: NIOConnectionError, host: String, connectTimeout: Duration) {
    guard let first = error.connectionErrors.first else {
      self = Self.isMissing(error) ? .noSuchHost(host) : .lookup(host: host)
      return
    }
    if error.connectionErrors.allSatisfy({ Self.isTimeout($0.error) }) {
      self = .timedOut(.connect, after: connectTimeout)
    } else if let cause = error.connectionErrors.lazy.compactMap({ $0.error as? IOError }).first {
      self = .noConnection(reason: Self.text(cause))
    } else {
      self = .noConnection(reason: "no connection: \(first.error)")
    }
  }

  private init(io error: IOError) {
    switch error.errnoCode {
    case ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EHOSTDOWN, ENETDOWN, EADDRNOTAVAIL:
      self = .noConnection(reason: Self.text(error))
    case ETIMEDOUT: self = .connectionLost(reason: "connection lost: the network stopped responding")
    default: self = .connectionLost(reason: Self.text(error))
    }
  }

  private init(parser error: HTTPParserError) {
    // The parser reports a body that ends before its stated length as an error.
    self =
      error == .invalidEOFState
      ? .connectionLost(reason: "connection closed by the server")
      : .malformed(reason: "the response is not HTTP (\(error))")
  }

  /// Returns true if the look-up (`getaddrinfo`) found that the host has no address, and did not merely fail.
  private static func isMissing(_ error: NIOConnectionError) -> Bool {
    guard let cause = (error.dnsAError ?? error.dnsAAAAError) as? SocketAddressError.UnknownHost else {
      // The look-up succeeded, with no address.
      return true
    }
    return ![EAI_AGAIN, EAI_FAIL, EAI_MEMORY, EAI_SYSTEM].contains(CInt(truncatingIfNeeded: cause.errorCode))
  }

  private static func isTimeout(_ error: any Error) -> Bool {
    if case ChannelError.connectTimeout = error { return true }
    return false
  }

  private static func text(_ error: IOError) -> String {
    switch error.errnoCode {
    case ECONNREFUSED: "connection refused"
    case ECONNRESET: "connection reset by the server"
    case EPIPE: "connection closed by the server"
    default: ReelError.systemText(error.errnoCode).lowercased()
    }
  }

  private init(tls text: String) {
    if text.contains("CERTIFICATE_VERIFY_FAILED") {
      self = .certificate(.untrusted)
    } else if text.contains("failedToValidateHostname") || text.contains("Couldn't find <") {
      self = .certificate(.wrongHost(names: []))
    } else if text.contains("uncleanShutdown") {
      self = .connectionLost(reason: "TLS connection cut off by the server")
    } else if ["WRONG_VERSION_NUMBER", "LENGTH_TOO_LONG", "UNEXPECTED_RECORD"].contains(where: {
      text.contains($0)
    }) {
      self = .tls(
        reason: "no TLS connection: the server does not speak TLS on this port", advice: "try http://")
    } else if text.contains("EOF during handshake") {
      self = .tls(
        reason: "the server ended the TLS handshake; it may not speak TLS on this port", advice: "try http://"
      )
    } else if let reason = text.firstMatch(of: /OPENSSL_internal:([A-Z0-9_]+)/) {
      let words = reason.1.lowercased().replacing("_", with: " ")
      self = .tls(reason: "no TLS connection: \(words)")
    } else {
      self = .tls(reason: "no TLS connection: \(text.prefix { $0 != "/" }.prefix(200))")
    }
  }

  /// An answer in TLS to a request without it.
  static let unexpectedTLS = TransferFailure.tls(
    reason: "the server speaks TLS on this port, and not plain HTTP", advice: "try https://")
}
