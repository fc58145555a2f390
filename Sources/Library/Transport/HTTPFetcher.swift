import AsyncHTTPClient
import Foundation
import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1
import ReelCore

/// Fetches over HTTP: sends requests, follows redirects, retries temporary failures.
///
/// Some servers answer only requests for a range. A request for a whole resource that one refuses, answers with a part
/// or, at the beginning of a source, fails to answer is repeated for the range of all bytes, as browsers ask for media.
/// Later requests to that server begin with it.
final class HTTPFetcher: Fetching {
  let configuration: TransportConfiguration
  private let connections: HTTPConnections
  private let admission: TransportFetcher.Admission?
  private let rangeOnlyServers = Locked<Set<ServerAddress>>([])
  private let cookies: CookieStore
  private let logger: Logger
  private let recordRetryAfter: (@Sendable (URL, Duration) -> Void)?

  init(
    configuration: TransportConfiguration, connections: HTTPConnections,
    admission: TransportFetcher.Admission?, recordRetryAfter: (@Sendable (URL, Duration) -> Void)?,
    logger: Logger
  ) {
    self.configuration = configuration
    self.connections = connections
    self.admission = admission
    cookies = CookieStore(configuration.cookies?.cookies ?? [])
    self.recordRetryAfter = recordRetryAfter
    self.logger = logger
  }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let session = TransferSession(request)
    do {
      let (transfer, answer) = try await open(RequestPlan(request), for: session)
      let body: FetchBody
      if request.method == .head || answer.status == 304 {
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
      response.validator = answer.validator
      response.head = session.answerHead
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
    var triesRange = false
    while true {
      do {
        return try await follow(plan, for: session, triesRange: triesRange)
      } catch let located as LocatedFailure {
        try await pause(
          after: located.failure, at: located.url, status: located.failure.status, for: session)
        triesRange =
          !triesRange && plan.isForWhole && session.request.purpose == .source
          && located.failure.mayLackRange
      } catch let error as ReelError where triesRange && error.status != nil {
        // The range is refused, which says nothing of the request without it.
        triesRange = false
      }
    }
  }

  /// Waits before the next request after `failure`.
  ///
  /// - Parameter status: That of the answer; nil without one.
  /// - Throws: The failure as `ReelError` if there is no retry; `CancellationError`.
  func pause(
    after failure: TransferFailure, at url: URL, status: Int?, for session: TransferSession
  ) async throws {
    if let delay = failure.retryAfter { recordRetryAfter?(url, delay) }
    let error = failure.reelError(
      at: url, requestCount: session.requestCount, proxy: configuration.proxies.proxy(for: url))
    guard let delay = session.delay(after: failure, policy: configuration.retryPolicy) else {
      guard case .connectionLost = failure, await expectsTLS(url, for: session) else { throw error }
      throw TransferFailure.unexpectedTLS.reelError(at: url, requestCount: session.requestCount)
    }
    logger.debug(
      "will try again",
      metadata: ["url": "\(url.logText)", "reason": "\(error.reason)", "delay": "\(delay)"])
    session.recordFailedAttempt()
    session.request.recordFailedAttempt?(error, status)
    try await Task.sleep(for: delay)
  }

  // MARK: - Private

  /// True if a server that has answered nothing speaks TLS on the port of an `http` URL: some close a connection that
  /// begins otherwise.
  private func expectsTLS(_ url: URL, for session: TransferSession) async -> Bool {
    guard url.scheme?.lowercased() == "http", !session.hasAnswer else { return false }
    let chain = await CertificateInspection.chain(
      of: url, through: configuration.proxies.proxy(for: url),
      within: min(configuration.connectTimeout, .seconds(2)))
    return chain != nil
  }

  /// A failure, and the URL, possibly after redirects, at which it happened.
  private struct LocatedFailure: Error {
    var failure: TransferFailure
    var url: URL
  }

  /// Sends one request, and follows redirects.
  ///
  /// - Parameter triesRange: Whether a whole resource is requested as the range of all bytes.
  private func follow(
    _ plan: RequestPlan, for session: TransferSession, triesRange: Bool
  ) async throws -> (HTTPTransfer, ResponseHead) {
    var plan = plan
    var visited: Set<URL> = [plan.url]
    var redirectCount = 0
    var refusal: (any Error)?
    while true {
      if plan.isForWhole, triesRange || needsRange(plan.url) { plan.range = .all }
      let answer = try await sendPatiently(plan, for: session)
      plan = answer.plan
      let (transfer, head) = (answer.transfer, answer.head)
      let status = Int(head.status.code)
      switch status {
      case 200...299:
        do {
          let parsed = try ResponseHead(head: head, url: plan.url, range: plan.range)
          if triesRange || refusal != nil, status == 206 { recordRangeOnly(plan.url) }
          return (transfer, parsed)
        } catch let failure as TransferFailure {
          transfer.cancel()
          let error = LocatedFailure(failure: failure, url: plan.url)
          guard status == 206, plan.isForWhole else { throw error }
          refusal = error
          plan.range = .all
        }
      case 304 where session.request.isConditional:
        return (transfer, try ResponseHead(head: head, url: plan.url, range: nil))
      case 301, 302, 303, 307, 308:
        await transfer.drain()
        try Task.checkCancellation()
        let target = try target(of: head, from: plan.url)
        // A server that sets a cookie may answer the same URL otherwise when it gets that cookie.
        if head.headers.contains(name: "Set-Cookie") { visited = [] }
        guard visited.insert(target).inserted else {
          throw ReelError(
            .server, "a redirect loop", at: session.request.url.absoluteString, status: status)
        }
        redirectCount += 1
        guard redirectCount <= configuration.maximumRedirects else {
          throw ReelError(
            .server, "more than \(configuration.maximumRedirects) redirects",
            at: session.request.url.absoluteString, status: status)
        }
        session.recordRedirect()
        logger.debug(
          "redirected",
          metadata: ["url": "\(plan.url.logText)", "to": "\(target.logText)"])
        plan.url = target
      default:
        let text = await transfer.drain()
        try Task.checkCancellation()
        // Servers that expect TLS, such as nginx, answer in plain HTTP with a page that says so.
        if status == 400, plan.url.scheme?.lowercased() == "http",
          ["HTTPS port", "HTTPS server", "SSL-enabled"].contains(where: { text.contains($0) })
        {
          throw LocatedFailure(failure: .unexpectedTLS, url: plan.url)
        }
        // If the range is refused too, the first answer says why.
        if let refusal { throw refusal }
        let error = self.refusal(status, head: head, of: plan)
        guard plan.isForWhole, isRefusalOfWhole(status, for: session) else { throw error }
        refusal = error
        plan.range = .all
      }
    }
  }

  /// True for a status with which servers refuse requests without a range: of a source any permanent one that does not
  /// state another reason, and otherwise the usual ones, so that other failures cost no second request.
  private func isRefusalOfWhole(_ status: Int, for session: TransferSession) -> Bool {
    if [400, 416].contains(status) { return true }
    return session.request.purpose == .source && ![401, 404, 407, 410, 451].contains(status)
      && !ReelError.temporaryStatuses.contains(status)
  }

  private func needsRange(_ url: URL) -> Bool {
    ServerAddress(url).map { server in rangeOnlyServers.withLock { $0.contains(server) } } ?? false
  }

  private func recordRangeOnly(_ url: URL) {
    if let server = ServerAddress(url) { _ = rangeOnlyServers.withLock { $0.insert(server) } }
  }

  /// Sends a request. If a source is not answered within half of the time for that, its range is requested too, because
  /// some servers never answer other requests, and the first answer is used.
  ///
  /// - Returns: The answer, and the plan of its request.
  private func sendPatiently(
    _ plan: RequestPlan, for session: TransferSession
  ) async throws -> (plan: RequestPlan, transfer: HTTPTransfer, head: HTTPResponseHead) {
    guard plan.isForWhole, session.request.purpose == .source else {
      let (transfer, head) = try await send(plan, for: session)
      return (plan, transfer, head)
    }
    typealias Answer = (plan: RequestPlan, transfer: HTTPTransfer, head: HTTPResponseHead)
    return try await withThrowingTaskGroup(of: Answer?.self) { group in
      group.addTask {
        let (transfer, head) = try await self.send(plan, for: session)
        return (plan, transfer, head)
      }
      group.addTask {
        var ranged = plan
        ranged.range = .all
        try? await Task.sleep(for: self.configuration.firstByteTimeout / 2)
        guard let (transfer, head) = try? await self.send(ranged, for: session) else { return nil }
        guard head.status == .partialContent else {
          transfer.cancel()
          return nil
        }
        return (ranged, transfer, head)
      }
      defer { group.cancelAll() }
      while let answer = try await group.next() {
        guard let answer else { continue }
        group.cancelAll()
        while let late = try? await group.next() { late?.transfer.cancel() }
        if !answer.plan.isForWhole { recordRangeOnly(answer.plan.url) }
        return answer
      }
      throw CancellationError()
    }
  }

  func openConnection(to url: URL) {
    let client = connections.client(for: url, configuration)
    _ = HTTPConnections.openAhead(1, for: url, on: client, logger: logger)
  }

  private func send(
    _ plan: RequestPlan, for session: TransferSession
  ) async throws -> (HTTPTransfer, HTTPResponseHead) {
    try Task.checkCancellation()
    var failure: TransferFailure
    do {
      let request = try HTTPClient.Request(
        url: plan.url, method: plan.method,
        headers: plan.headers(userAgent: configuration.userAgent, cookies: cookies))
      let client = connections.client(for: plan.url, configuration)
      let sentAt = ContinuousClock.now
      session.recordRequest(isPersonal: session.request.wantsHead && plan.isPersonal(cookies))
      logger.debug(
        "request",
        metadata: [
          "url": "\(plan.url.logText)", "range": "\(plan.range?.httpHeaderValue ?? "-")",
        ])
      let transfer = HTTPTransfer.start(
        request, for: session.request, on: client, admit: admit(for: plan.url), configuration: configuration,
        logger: logger)
      // One that closes its connection is asked ahead: what it leads to is asked for over others.
      let isFollowed =
        (session.request.purpose == .manifest || session.request.purpose == .source)
        && !session.request.headers.contains(.connection)
      let callOff = HTTPConnections.openAhead(
        isFollowed ? configuration.connectionsAhead : 0, for: plan.url, on: client, logger: logger)
      defer { callOff() }
      let head = try await transfer.head()
      connections.record(head.version, of: plan.url)
      cookies.add(head.headers["Set-Cookie"], from: plan.url)
      session.recordAnswer(head, of: transfer)
      logger.debug(
        "answer",
        metadata: [
          "url": "\(plan.url.logText)", "status": "\(head.status.code)",
          "after": "\(ContinuousClock.now - sentAt)",
        ])
      return (transfer, head)
    } catch TransferFailure.versionChanged {
      connections.recordChange(of: plan.url)
      return try await send(plan, for: session)
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

  /// Returns a function that throws an error if a request for a URL must not be sent over a connection.
  private func admit(for url: URL) -> (@Sendable (any Channel) throws(ReelError) -> Void)? {
    guard let admission, let host = url.host(percentEncoded: false) else { return nil }
    let isDirect = configuration.proxies.proxy(for: url) == nil
    return { (connection) throws(ReelError) in
      try admission(host.lowercased(), isDirect ? PeerAddress(of: connection) : nil)
    }
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
        .server, "\(status) to \"\(location.withoutUserInformation.prefix(200))\", which is not a URL",
        at: url.absoluteString,
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

  /// True for a request of a whole resource.
  var isForWhole: Bool { method == .GET && range == nil }

  /// True if the server of `url` gets credentials or cookies.
  func isPersonal(_ cookies: CookieStore) -> Bool {
    request.fields(for: url, cookies: cookies).contains(where: \.isCredential)
  }

  /// True if the source has credentials that the server of `url` does not get.
  var withholdsCredentials: Bool { request.withholdsCredentials(from: url) }

  func headers(userAgent: String, cookies: CookieStore) -> HTTPHeaders {
    let fields = request.fields(for: url, cookies: cookies)
    var headers = HTTPHeaders()
    // Fields of the caller replace Reel's own. Several of the caller with the same name are all kept.
    if !fields.contains(.userAgent) { headers.add(name: "User-Agent", value: userAgent) }
    if !fields.contains(.accept) { headers.add(name: "Accept", value: "*/*") }
    for field in fields { headers.add(name: field.name.rawName, value: field.value) }
    // "identity" must be stated: without the field, the decompressor would request compression.
    let coding = acceptsCompression && range == nil ? "gzip, deflate" : "identity"
    headers.replaceOrAdd(name: "Accept-Encoding", value: coding)
    if let range { headers.replaceOrAdd(name: "Range", value: range.httpHeaderValue) }
    if let ifRange { headers.replaceOrAdd(name: "If-Range", value: ifRange) }
    return headers
  }
}
