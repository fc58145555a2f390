import Foundation
import HTTPTypes
import ReelCore
import ReelTestSupport

@testable import ReelCache

/// A server that answers as RFC 9110 wants, and a record of what it was asked.
final class CachedOrigin: AgentNaming {
  struct Resource {
    var bytes: [UInt8]
    var fields: HTTPFields = [:]
    /// The size of the chunks of a body.
    var chunkByteCount = 10_000
    /// The number of bytes after which a body breaks; nil for none.
    var breaksAfter: Int?
    /// The number of bytes after which a body gives nothing until it is cancelled; nil for none.
    var hangsAfter: Int?
    var isPersonal = false
    var redirectsTo: String?
    /// False if no answer states the size.
    var statesSize = true
    /// False if ranges are answered with the whole.
    var sendsRanges = true
    /// False if the answer of a range has no caching fields.
    var describesParts = true
    /// What 304 states besides the fields of the resource.
    var confirmation: HTTPFields = [:]
  }

  struct Asked: Equatable {
    var path: String
    var range: ByteRange?
    var isConditional = false
  }

  private struct State {
    var resources: [String: Resource] = [:]
    var asked: [Asked] = []
    var sentByteCount = 0
    /// The number of bodies that are being read.
    var openCount = 0
    /// The number of bodies that hang, or did.
    var hangingCount = 0
    /// The number of bodies that were read to their end.
    var endedCount = 0
    var failure: ReelError?
    /// Called before an answer.
    var gate: (@Sendable (FetchRequest) async -> Void)?
  }

  private let state = Locked(State())
  let userAgent: String

  init(userAgent: String = "test") { self.userAgent = userAgent }

  subscript(path: String) -> Resource? {
    get { state.withLock { $0.resources[path] } }
    set { state.withLock { $0.resources[path] = newValue } }
  }

  var asked: [Asked] { state.withLock { $0.asked } }
  var sentByteCount: Int { state.withLock { $0.sentByteCount } }
  var openCount: Int { state.withLock { $0.openCount } }
  var hangingCount: Int { state.withLock { $0.hangingCount } }
  var endedCount: Int { state.withLock { $0.endedCount } }

  /// Makes a cache in front of it.
  func makeCache(
    at folder: URL, byteLimit: Int64 = 100_000_000, clock: any WallClock = SystemWallClock()
  ) -> MediaCache {
    MediaCache(
      at: folder, byteLimit: byteLimit, inFrontOf: self, assumedFreshness: .seconds(86_400), clock: clock,
      logger: silentLogger)
  }

  func forget() {
    state.withLock { state in
      state.asked = []
      state.sentByteCount = 0
    }
  }

  /// Lets all requests fail; nil for none.
  func fail(with error: ReelError?) { state.withLock { $0.failure = error } }

  func hold(_ gate: (@Sendable (FetchRequest) async -> Void)?) { state.withLock { $0.gate = gate } }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let path = request.url.path
    let isConditional = request.isConditional
    let (resource, failure, gate) = state.withLock { state in
      state.asked.append(Asked(path: path, range: request.range, isConditional: isConditional))
      return (state.resources[path], state.failure, state.gate)
    }
    await gate?(request)
    if let failure {
      report(request, .failed(failure))
      throw failure
    }
    guard let resource else { throw ReelError(.server, "404", at: path, status: 404) }
    let tag = resource.fields[.eTag]
    let isSame =
      request.headers[.ifNoneMatch].map { $0 == tag }
      ?? request.headers[.ifModifiedSince].map { $0 == resource.fields[.lastModified] } ?? false
    if isSame {
      var confirmed = resource
      confirmed.fields += resource.confirmation
      let response = response(to: request, 304, confirmed, bytes: [], from: 0)
      response.body.close()
      return response
    }
    let mayBePart =
      request.headers[.ifRange].map { $0 == tag || $0 == resource.fields[.lastModified] } ?? true
    if let range = request.range, mayBePart, resource.sendsRanges {
      let start = Int(range.offset)
      guard start < resource.bytes.count else { throw ReelError(.server, "416", at: path, status: 416) }
      let end = min(range.end.map(Int.init) ?? resource.bytes.count, resource.bytes.count)
      var resource = resource
      if !resource.describesParts { resource.fields = [:] }
      return response(to: request, 206, resource, bytes: Array(resource.bytes[start..<end]), from: start)
    }
    return response(to: request, 200, resource, bytes: resource.bytes, from: 0)
  }

  private func response(
    to request: FetchRequest, _ status: Int, _ resource: Resource, bytes: [UInt8], from start: Int
  ) -> FetchResponse {
    let position = Locked(0)
    state.withLock { $0.openCount += 1 }
    let onEnd = { @Sendable [self] (result: Result<Void, any Error>) in
      state.withLock { state in
        state.openCount -= 1
        if case .success = result { state.endedCount += 1 }
      }
      let isWhole = position.withLock { $0 } == bytes.count
      report(request, isWhole ? .completed : RequestMetrics.Outcome(result))
    }
    let body = FetchBody(onEnd: onEnd) { [state] in
      let from = position.withLock { $0 }
      if let limit = resource.breaksAfter, from >= limit {
        throw ReelError(.network, "broken", at: "\(request.url)")
      }
      if let limit = resource.hangsAfter, from >= limit {
        state.withLock { $0.hangingCount += 1 }
        try await Task.sleep(for: .seconds(86_400))
      }
      let chunk = Array(bytes[from..<min(bytes.count, from + resource.chunkByteCount)])
      position.withLock { $0 += chunk.count }
      state.withLock { $0.sentByteCount += chunk.count }
      return chunk.isEmpty ? nil : chunk
    }
    let url = resource.redirectsTo.flatMap { URL(string: $0) } ?? request.url
    var response = FetchResponse(
      url: url, contentType: resource.fields[.contentType], bodyOffset: Int64(start),
      bodyByteCount: resource.statesSize ? Int64(bytes.count) : nil,
      resourceByteCount: resource.statesSize ? Int64(resource.bytes.count) : nil,
      supportsRanges: resource.sendsRanges, body: body)
    if request.wantsHead {
      response.head = AnswerHead(status: status, fields: resource.fields, isPersonal: resource.isPersonal)
    }
    response.validator = resource.fields[.eTag] ?? resource.fields[.lastModified]
    return response
  }

  private func report(_ request: FetchRequest, _ outcome: RequestMetrics.Outcome) {
    var metrics = RequestMetrics(url: request.url, purpose: request.purpose, requestCount: 1)
    metrics.outcome = outcome
    request.report?(metrics)
  }
}

/// A clock that is set by hand.
final class SetClock: WallClock {
  private let time = Locked(WallTime(nanosecondsSince1970: 1_700_000_000_000_000_000))

  var now: WallTime { time.withLock { $0 } }

  func advance(by seconds: Int64) {
    time.withLock { $0 = $0 + MediaTime(value: seconds, timescale: 1) }
  }

  func sleep(for duration: Duration) async throws { try await Task.sleep(for: duration) }
}

extension URL {
  /// A resource of `http://example.com`.
  static func example(_ path: String) -> URL {
    guard let url = URL(string: "http://example.com\(path)") else {
      preconditionFailure("not a path: \(path)")
    }
    return url
  }
}

/// Bytes of which each tells its place and its version.
func content(_ count: Int, seed: Int = 1) -> [UInt8] {
  (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ seed &* 7 &+ $0 >> 8) }
}
