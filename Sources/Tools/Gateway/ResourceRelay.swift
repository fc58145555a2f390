import Foundation
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import ReelCore
import ReelManifest

/// Relays a resource from its origin to a client.
struct ResourceRelay: Sendable {
  let resource: VirtualHLS.Resource
  let fetcher: any Fetching
  let logger: Logger

  /// Returns the response to a GET or HEAD request. Tries the URLs of the resource in turn until one delivers
  /// its first byte.
  ///
  /// Throws `CancellationError` if the client has disconnected.
  func response(to request: Request, connection: ClientConnection) async throws -> Response {
    let range = request.method == .get ? RangeField(request.headers[.range]) : nil
    var failure: ReelError?
    for url in [resource.url] + resource.alternateURLs {
      do {
        return try await response(
          from: url, range: range, isHead: request.method == .head, connection: connection)
      } catch let error as ReelError {
        logger.debug("origin failed", metadata: ["reason": "\(error)"])
        failure = failure ?? error
      }
    }
    return .failure(of: "origin", failure ?? ReelError(.network, "no URL"))
  }

  // MARK: - Private

  /// An answer that has begun.
  private struct Opened: Sendable {
    var response: FetchResponse
    /// The first bytes of the body; nil for an empty one.
    var first: [UInt8]?
  }

  private func response(
    from url: URL, range: RangeField?, isHead: Bool, connection: ClientConnection
  ) async throws -> Response {
    if isHead {
      let head = try await connection.whileOpen { try await fetch(.head, url, nil).response }
      return whole(count: head.resourceByteCount ?? head.bodyByteCount, body: ResponseBody())
    }
    guard let range else {
      let opened = try await connection.whileOpen { try await fetch(.get, url, nil) }
      return whole(opened, connection: connection)
    }
    switch range {
    case .last:
      guard let size = try await size(of: url, connection: connection) else {
        // A server may ignore a range that it can't serve (RFC 9110 §14.2).
        let opened = try await connection.whileOpen { try await fetch(.get, url, nil) }
        return whole(opened, connection: connection)
      }
      guard let bytes = range.bytes(of: size) else { return unsatisfiable(size) }
      let part = ByteRange(offset: bytes.lowerBound, length: Int64(bytes.count))
      let opened = try await connection.whileOpen { try await fetch(.get, url, part) }
      return self.part(opened, range, connection: connection)
    case .from(let first, let last):
      let (length, overflow) = (last ?? 0).subtractingReportingOverflow(first - 1)
      let part = ByteRange(offset: first, length: last == nil || overflow ? nil : length)
      do {
        let opened = try await connection.whileOpen { try await fetch(.get, url, part) }
        return self.part(opened, range, connection: connection)
      } catch let error as ReelError {
        // An origin fails for many reasons. Only the size shows that the range is outside the resource.
        guard error.kind == .server || error.kind == .badMedia,
          let size = try await size(of: url, connection: connection), range.bytes(of: size) == nil
        else { throw error }
        return unsatisfiable(size)
      }
    }
  }

  private func fetch(_ method: HTTPRequest.Method, _ url: URL, _ range: ByteRange?) async throws -> Opened {
    let purpose: FetchPurpose =
      switch resource.kind {
      case .initialization: .initialization
      case .segment, .file: .segment
      case .key: .resource
      }
    let response = try await fetcher.fetch(
      FetchRequest(method, url: url, range: range, purpose: purpose))
    return Opened(response: response, first: try await response.body.next())
  }

  /// Returns nil if unknown.
  private func size(of url: URL, connection: ClientConnection) async throws -> Int64? {
    do {
      return try await connection.whileOpen {
        let head = try await fetcher.fetch(FetchRequest(.head, url: url, purpose: .segment))
        return head.resourceByteCount ?? head.bodyByteCount
      }
    } catch is ReelError {
      return nil
    }
  }

  private func whole(_ opened: Opened, connection: ClientConnection) -> Response {
    let count = opened.response.bodyByteCount
    return whole(
      count: count, body: body(opened, skipping: 0, count: nil, contentLength: count, connection: connection))
  }

  private func whole(count: Int64?, body: ResponseBody) -> Response {
    var headers = fields
    if let count { headers[.contentLength] = String(count) }
    return Response(status: .ok, headers: headers, body: body)
  }

  /// Returns the requested part. If the origin sends more than that, the rest is cut off. If it does not state how much it
  /// sends, the client gets all of it.
  private func part(_ opened: Opened, _ range: RangeField, connection: ClientConnection) -> Response {
    let response = opened.response
    let end = response.bodyByteCount.map { response.bodyOffset.addingReportingOverflow($0) }
    guard let end, !end.overflow else { return whole(opened, connection: connection) }
    let size = response.resourceByteCount ?? end.partialValue
    guard let wanted = range.bytes(of: size), wanted.lowerBound >= response.bodyOffset,
      wanted.lowerBound < end.partialValue
    else { return unsatisfiable(size) }
    let sent = wanted.lowerBound..<min(wanted.upperBound, end.partialValue)
    var headers = fields
    let total = response.resourceByteCount.map { String($0) } ?? "*"
    headers[.contentRange] = "bytes \(sent.lowerBound)-\(sent.upperBound - 1)/\(total)"
    let count = Int64(sent.count)
    headers[.contentLength] = String(count)
    return Response(
      status: .partialContent, headers: headers,
      body: body(
        opened, skipping: sent.lowerBound - response.bodyOffset, count: count, contentLength: count,
        connection: connection))
  }

  private func unsatisfiable(_ size: Int64) -> Response {
    var response = Response.text(.rangeNotSatisfiable, "it has \(size) bytes")
    response.headers[.contentRange] = "bytes */\(size)"
    return response
  }

  private var fields: HTTPFields {
    [.contentType: resource.mediaType, .cacheControl: "no-cache", .acceptRanges: "bytes"]
  }

  /// Returns the bytes of a response. Each chunk is requested when the previous one is on its way to the
  /// client. If the origin breaks off, the connection is closed before the announced end, so that the client
  /// notices.
  private func body(
    _ opened: Opened, skipping: Int64, count: Int64?, contentLength: Int64?, connection: ClientConnection
  ) -> ResponseBody {
    let length = contentLength.flatMap { Int(exactly: $0) }
    return ResponseBody(contentLength: length) { writer in
      var (toSkip, remaining) = (skipping, count ?? .max)
      var next = opened.first
      while let chunk = next, remaining > 0 {
        var bytes = chunk[...]
        let skipped = min(toSkip, Int64(bytes.count))
        toSkip -= skipped
        bytes = bytes.dropFirst(Int(skipped)).prefix(Int(clamping: remaining))
        remaining -= Int64(bytes.count)
        if !bytes.isEmpty { try await writer.write(ByteBuffer(bytes: bytes)) }
        guard remaining > 0 else { break }
        next = try await connection.whileOpen { try await opened.response.body.next() }
      }
      if count != nil, remaining > 0 { throw ReelError(.server, "the response ends too early") }
      try await writer.finish(nil)
    }
  }
}
