import AsyncHTTPClient
import Foundation
import HTTPTypes
import Logging
import NIOHTTP1
import ReelCore

/// Fetches over HTTP: sends requests, follows redirects, retries temporary failures.
final class HTTPFetcher: Fetching {
  let configuration: TransportConfiguration
  private let logger: Logger
  private let recordRetryAfter: (@Sendable (URL, Duration) -> Void)?

  init(
    configuration: TransportConfiguration, recordRetryAfter: (@Sendable (URL, Duration) -> Void)? = nil,
    logger: Logger
  ) {
    self.configuration = configuration
    self.recordRetryAfter = recordRetryAfter
    self.logger = logger
  }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let session = TransferSession(request)
    do {
      let (transfer, answer) = try await open(RequestPlan(request), for: session)
      let body: FetchBody
      if request.method == .head {
        await transfer.drain()
        session.finish(.success(()))
        body = FetchBody { nil }
      } else {
        let chunks = HTTPBody(transfer: transfer, head: answer, session: session, fetcher: self)
        body = FetchBody(onEnd: { chunks.finish($0) }) { try await chunks.next() }
      }
      var response = FetchResponse(
        url: answer.url, contentType: answer.contentType, bodyOffset: answer.bodyOffset,
        bodyByteCount: answer.bodyByteCount, resourceByteCount: answer.resourceByteCount,
        supportsRanges: answer.supportsRanges, body: body)
      response.date = answer.date
      response.requestCount = session.requestCount
      return response
    } catch {
      session.finish(.failure(error))
      throw error
    }
  }

  /// Sends `plan` until it succeeds, within the session's budget of retries.
  ///
  /// - Throws: `ReelError`, `CancellationError`.
  func open(_ plan: RequestPlan, for session: TransferSession) async throws -> (HTTPTransfer, ResponseHead) {
    while true {
      do {
        return try await follow(plan, for: session)
      } catch let located as LocatedFailure {
        try await pause(after: located.failure, at: located.url, for: session)
      }
    }
  }

  /// Waits before the next request after `failure`.
  ///
  /// - Throws: The failure as `ReelError` if there is no retry; `CancellationError`.
  func pause(after failure: TransferFailure, at url: URL, for session: TransferSession) async throws {
    if let delay = failure.retryAfter { recordRetryAfter?(url, delay) }
    let error = failure.reelError(
      at: url, requestCount: session.requestCount, proxy: configuration.proxies.proxy(for: url))
    guard let delay = session.delay(after: failure, policy: configuration.retryPolicy) else { throw error }
    logger.debug(
      "will try again",
      metadata: ["url": "\(url.withoutUserInformation)", "reason": "\(error.reason)", "delay": "\(delay)"])
    session.recordFailedAttempt()
    session.request.recordFailedAttempt?(error)
    try await Task.sleep(for: delay)
  }

  // MARK: - Private

  /// A failure, and the URL, possibly after redirects, at which it happened.
  private struct LocatedFailure: Error {
    var failure: TransferFailure
    var url: URL
  }

  /// Sends one request, and follows redirects.
  private func follow(
    _ plan: RequestPlan, for session: TransferSession
  ) async throws -> (HTTPTransfer, ResponseHead) {
    var plan = plan
    var visited: Set<URL> = [plan.url]
    while true {
      let (transfer, head) = try await send(plan, for: session)
      let status = Int(head.status.code)
      switch status {
      case 200...299:
        do {
          return (transfer, try ResponseHead(head: head, url: plan.url, range: plan.range))
        } catch let failure as TransferFailure {
          transfer.cancel()
          throw LocatedFailure(failure: failure, url: plan.url)
        }
      case 301, 302, 303, 307, 308:
        await transfer.drain()
        try Task.checkCancellation()
        let target = try target(of: head, from: plan.url)
        guard visited.insert(target).inserted else {
          throw ReelError(
            .server, "a redirect loop", at: session.request.url.absoluteString, status: status)
        }
        guard visited.count <= configuration.maximumRedirects + 1 else {
          throw ReelError(
            .server, "more than \(configuration.maximumRedirects) redirects",
            at: session.request.url.absoluteString, status: status)
        }
        session.recordRedirect()
        logger.debug(
          "redirected",
          metadata: ["url": "\(plan.url.withoutUserInformation)", "to": "\(target.withoutUserInformation)"])
        plan.url = target
      default:
        await transfer.drain()
        try Task.checkCancellation()
        throw refusal(status, head: head, of: plan)
      }
    }
  }

  func openConnection(to url: URL) {
    let client = HTTPConnections.client(for: url, configuration)
    _ = HTTPConnections.openAhead(1, for: url, on: client, logger: logger)
  }

  private func send(
    _ plan: RequestPlan, for session: TransferSession
  ) async throws -> (HTTPTransfer, HTTPResponseHead) {
    try Task.checkCancellation()
    var failure: TransferFailure
    do {
      let request = try HTTPClient.Request(
        url: plan.url, method: plan.method, headers: plan.headers(configuration: configuration))
      let client = HTTPConnections.client(for: plan.url, configuration)
      let sentAt = ContinuousClock.now
      session.recordRequest()
      logger.debug(
        "request",
        metadata: [
          "url": "\(plan.url.withoutUserInformation)", "range": "\(plan.range?.httpHeaderValue ?? "-")",
        ])
      let transfer = HTTPTransfer.start(
        request, for: session.request, on: client, configuration: configuration, logger: logger)
      let isFollowed = session.request.purpose == .manifest || session.request.purpose == .source
      let callOff = HTTPConnections.openAhead(
        isFollowed ? configuration.connectionsAhead : 0, for: plan.url, on: client, logger: logger)
      defer { callOff() }
      let head = try await transfer.head()
      session.recordAnswer(head, of: transfer)
      logger.debug(
        "answer",
        metadata: [
          "url": "\(plan.url.withoutUserInformation)", "status": "\(head.status.code)",
          "after": "\(ContinuousClock.now - sentAt)",
        ])
      return (transfer, head)
    } catch TransferFailure.certificate(let fault) {
      failure = .certificate(await explained(fault, at: plan.url))
    } catch let error as TransferFailure {
      failure = error
    } catch let error as HTTPClientError {
      failure = TransferFailure(
        error, host: plan.url.host() ?? "", connectTimeout: configuration.connectTimeout)
    }
    throw LocatedFailure(failure: failure, url: plan.url)
  }

  /// Adds details from the server's certificates to a fault.
  private func explained(_ fault: CertificateFault, at url: URL) async -> CertificateFault {
    let chain = await CertificateInspection.chain(
      of: url, through: configuration.proxies.proxy(for: url), within: configuration.connectTimeout)
    guard let chain, let own = chain.first else { return fault }
    if case .wrongHost = fault { return .wrongHost(names: CertificateFault.hosts(of: own)) }
    return CertificateFault(of: chain, at: .now)
  }

  /// Returns the URL that a redirect leads to.
  private func target(of head: HTTPResponseHead, from url: URL) throws -> URL {
    let code = Int(head.status.code)
    let status = TransferFailure.statusText(code)
    guard let location = head.headers.first(name: "Location"), !location.isEmpty else {
      throw ReelError(.server, "\(status) without a Location", at: url.absoluteString, status: code)
    }
    guard let target = URL(string: location, relativeTo: url)?.absoluteURL else {
      throw ReelError(
        .server, "\(status) to \"\(location.prefix(200))\", which is not a URL", at: url.absoluteString,
        status: code)
    }
    guard let scheme = target.scheme?.lowercased(), scheme == "http" || scheme == "https" else {
      throw ReelError(
        .server, "\(status) to the scheme \(target.scheme ?? ""):, which a server must not redirect to",
        at: url.absoluteString, status: code)
    }
    guard target.host()?.isEmpty == false, target.port.map({ (1...65535).contains($0) }) ?? true else {
      throw ReelError(
        .server, "\(status) to a URL without a host or with no valid port", at: url.absoluteString,
        status: code)
    }
    return target
  }

  /// Returns the error for an unsuccessful response: a `LocatedFailure` if it may be temporary.
  private func refusal(_ status: Int, head: HTTPResponseHead, of plan: RequestPlan) -> any Error {
    let url = plan.url
    switch status {
    case _ where ReelError.temporaryStatuses.contains(status):
      let retryAfter = RetryAfter.duration(head.headers.first(name: "Retry-After"))
      return LocatedFailure(failure: .status(status, retryAfter: retryAfter), url: url)
    case 401, 403:
      return ReelError(
        .server, TransferFailure.statusText(status), at: url.absoluteString,
        advice: plan.withholdsCredentials
          ? "this server is not the source's, so it got no credentials: name its host if it may have them"
          : "the server may require other request headers or a new URL", status: status)
    case 416:
      let size = head.headers.first(name: "Content-Range").flatMap {
        ContentRange(parsing: $0)?.resourceByteCount
      }
      let reason = TransferFailure.statusText(status) + (size.map { " (it has \($0) bytes)" } ?? "")
      return ReelError(.server, reason, at: url.absoluteString, status: status)
    default:
      return ReelError(.server, TransferFailure.statusText(status), at: url.absoluteString, status: status)
    }
  }
}

/// A `FetchRequest` on its way through redirects and retries.
struct RequestPlan {
  let method: HTTPMethod
  var url: URL
  var range: ByteRange?
  /// The validator that the resource must still have, for a part that continues an earlier one.
  var ifRange: String?
  private let request: FetchRequest
  /// True for whole manifests and sources of unknown kind.
  private let acceptsCompression: Bool

  init(_ request: FetchRequest) {
    method = request.method == .head ? .HEAD : .GET
    url = request.url
    range = request.range
    self.request = request
    acceptsCompression =
      request.range == nil && (request.purpose == .manifest || request.purpose == .source)
  }

  /// Returns the plan for the rest of a body: `range` of the resource at `url`, the target of earlier
  /// redirects.
  func continuing(at url: URL, range: ByteRange, ifRange: String?) -> RequestPlan {
    var copy = self
    copy.url = url
    copy.range = range
    copy.ifRange = ifRange
    return copy
  }

  /// True if the source has credentials that the server of `url` does not get.
  var withholdsCredentials: Bool { request.withholdsCredentials(from: url) }

  func headers(configuration: TransportConfiguration) -> HTTPHeaders {
    let fields = request.fields(for: url)
    var headers = HTTPHeaders()
    // Fields of the caller replace Reel's own. Several of the caller with the same name are all kept.
    if !fields.contains(.userAgent) { headers.add(name: "User-Agent", value: configuration.userAgent) }
    if !fields.contains(.accept) { headers.add(name: "Accept", value: "*/*") }
    for field in fields { headers.add(name: field.name.rawName, value: field.value) }
    // "identity" must be stated: without the field, the decompressor would request compression.
    let coding = acceptsCompression && range == nil ? "gzip, deflate" : "identity"
    headers.replaceOrAdd(name: "Accept-Encoding", value: coding)
    if let range { headers.replaceOrAdd(name: "Range", value: range.httpHeaderValue) }
    if let ifRange { headers.replaceOrAdd(name: "If-Range", value: ifRange) }
    if !headers.contains(name: "Cookie"), let cookies = configuration.cookies?.header(for: url) {
      headers.add(name: "Cookie", value: cookies)
    }
    return headers
  }
}
