import Foundation
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import ReelCore
import ReelManifest
import ReelSources

/// Fetches encrypted media, and answers requests with it in the clear.
///
/// Each part is fetched and decrypted whole, since the metadata of its encryption is needed before its media.
struct DecryptedMedia: Sendable {
  let decryption: any MediaDecrypting
  let fetcher: any Fetching
  let logger: Logger
  private let initializations = Initializations()

  /// A larger part is refused: four seconds of media at the limit of a player.
  private static let byteLimit = Int(4 * LoadingConfiguration().segmentByteRate)

  init(decryption: any MediaDecrypting, fetcher: any Fetching, logger: Logger) {
    self.decryption = decryption
    self.fetcher = fetcher
    self.logger = logger
  }

  /// Returns the response to a GET or HEAD request.
  ///
  /// Throws `CancellationError` if the client has disconnected.
  func response(
    to request: Request, for resource: VirtualHLS.Resource, _ part: VirtualHLS.EncryptedPart,
    connection: ClientConnection
  ) async throws -> Response {
    do {
      let clear = try await connection.whileOpen { try await clearBytes(of: resource, part) }
      let range = request.method == .get ? RangeField(request.headers[.range]) : nil
      return response(with: clear, of: resource.mediaType, range)
    } catch let failure as Failure {
      logger.warning(
        "media is not served", metadata: ["path": "\(request.uri.path)", "reason": "\(failure.error)"])
      return .failure(of: failure.origin, failure.error)
    }
  }

  // MARK: - Private

  private struct Failure: Error {
    /// What failed, for the client.
    var origin: String
    var error: ReelError
  }

  private func response(with bytes: [UInt8], of mediaType: String, _ range: RangeField?) -> Response {
    var headers: HTTPFields = [
      .contentType: mediaType, .cacheControl: "no-cache", .acceptRanges: "bytes",
    ]
    guard let range else {
      return Response(status: .ok, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }
    guard let part = range.bytes(of: Int64(bytes.count)) else {
      var response = Response.text(.rangeNotSatisfiable, "it has \(bytes.count) bytes")
      response.headers[.contentRange] = "bytes */\(bytes.count)"
      return response
    }
    headers[.contentRange] = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(bytes.count)"
    let body = ByteBuffer(bytes: bytes[Int(part.lowerBound)..<Int(part.upperBound)])
    return Response(status: .partialContent, headers: headers, body: ResponseBody(byteBuffer: body))
  }

  private func clearBytes(
    of resource: VirtualHLS.Resource, _ part: VirtualHLS.EncryptedPart
  ) async throws -> [UInt8] {
    let isInitialization = resource.kind == .initialization
    let (bytes, initialization) = try await failing("origin") {
      if isInitialization {
        let reference = InitializationReference(
          url: resource.url, byteRange: part.range, alternateURLs: resource.alternateURLs)
        return (try await initializations.bytes(of: reference, fetch), nil as [UInt8]?)
      }
      let initialization: [UInt8]? =
        if let reference = part.initialization {
          try await initializations.bytes(of: reference, fetch)
        } else {
          nil
        }
      let bytes = try await self.bytes(
        at: [resource.url] + resource.alternateURLs, part.range, .segment, limit: Self.byteLimit)
      return (bytes, initialization)
    }
    return try await failing("decryption") {
      isInitialization
        ? try await decryption.initialization(bytes)
        : try await decryption.segment(
          bytes, at: part.range?.offset ?? 0, initialization: initialization)
    }
  }

  private func failing<Result>(_ origin: String, _ body: () async throws -> Result) async throws -> Result {
    do {
      return try await body()
    } catch let error as ReelError {
      throw Failure(origin: origin, error: error)
    } catch is CancellationError {
      throw CancellationError()
    } catch {
      logger.debug("\(origin) failed", metadata: ["error": "\(error)"])
      throw Failure(origin: origin, error: ReelError(.unsupported, "the keys can't be requested"))
    }
  }

  private func fetch(_ reference: InitializationReference) async throws -> [UInt8] {
    try await bytes(
      at: [reference.url] + reference.alternateURLs, reference.byteRange, .initialization,
      limit: Initializations.byteLimit)
  }

  /// Returns the bytes at the first URL that delivers them.
  private func bytes(
    at urls: [URL], _ range: ByteRange?, _ purpose: FetchPurpose, limit: Int
  ) async throws -> [UInt8] {
    var failure: ReelError?
    for url in urls {
      do {
        let response = try await fetcher.fetch(FetchRequest(url: url, range: range, purpose: purpose))
        let bytes = try await response.ranged(range).collect(upTo: limit)
        guard range?.length ?? Int64(bytes.count) == Int64(bytes.count) else {
          throw ReelError(.server, "the response ends too early")
        }
        return bytes
      } catch let error as ReelError {
        failure = failure ?? error
      }
    }
    throw failure ?? ReelError(.network, "no URL")
  }
}

/// The initialization segments fetched so far, still encrypted: each media segment needs its own.
private actor Initializations {
  private var tasks: [InitializationReference: Task<[UInt8], any Error>] = [:]

  static let byteLimit = 1 << 20
  /// Beyond it, all are fetched again.
  private static let limit = 64

  func bytes(
    of reference: InitializationReference,
    _ fetch: @escaping @Sendable (InitializationReference) async throws -> [UInt8]
  ) async throws -> [UInt8] {
    if let known = tasks[reference] { return try await known.value }
    if tasks.count >= Self.limit { tasks = [:] }
    let task = Task { try await fetch(reference) }
    tasks[reference] = task
    do {
      return try await task.value
    } catch {
      if tasks[reference] == task { tasks[reference] = nil }
      throw error
    }
  }
}
