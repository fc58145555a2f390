public import Foundation

/// What a request is for: metrics are grouped by it, and a fetcher may rank by it.
public enum FetchPurpose: String, Sendable, Hashable {
  /// The first request of a source, before its kind is known.
  case source
  case manifest
  /// What decrypts segments.
  case key
  /// A server's time.
  case clock
  case initialization
  case segment
  /// A poster image or other side resource.
  case resource
}

/// What is asked for (RFC 9110 §9.3).
public enum FetchMethod: String, Sendable, Hashable {
  case get = "GET"
  /// The head of the answer alone; its body is empty.
  case head = "HEAD"
}

/// One resource, or a part of one, to be fetched.
public struct FetchRequest: Sendable {
  public var method: FetchMethod
  /// `http`, `https` or `file`.
  public var url: URL
  /// Nil for the whole resource.
  public var range: ByteRange?
  /// Extra header fields, in order.
  public var headers: [HeaderField]
  public var purpose: FetchPurpose
  /// Called once when the transfer has ended, in whatever way. Must not block.
  public var report: (@Sendable (RequestMetrics) -> Void)?
  /// Told how many more bytes of the body, or fewer, are held that have come and were not taken. Must not block.
  public var noteHeld: (@Sendable (Int) -> Void)?

  public init(
    _ method: FetchMethod = .get, url: URL, range: ByteRange? = nil, headers: [HeaderField] = [],
    purpose: FetchPurpose, report: (@Sendable (RequestMetrics) -> Void)? = nil
  ) {
    self.method = method
    self.url = url
    self.range = range
    self.headers = headers
    self.purpose = purpose
    self.report = report
  }
}

/// A header field of a request.
public struct HeaderField: Sendable, Hashable {
  public let name: String
  public let value: String

  public init(name: String, value: String) {
    self.name = name
    self.value = value
  }
}

/// The head of an answer, and its body as it arrives.
public struct FetchResponse: Sendable {
  /// Where the body really comes from, after redirects.
  public var url: URL
  /// The media type as the server states it.
  public var contentType: String?
  /// The first byte of the resource that the body holds: the range's offset where the server kept to the range,
  /// 0 where it sent everything.
  public var bodyOffset: Int64
  /// The size of the body in bytes, where it is known ahead.
  public var bodyByteCount: Int64?
  /// The size of the whole resource in bytes, where it is known.
  public var resourceByteCount: Int64?
  /// True where parts of the resource can be asked for.
  public var supportsRanges: Bool
  /// When the server made the answer, by its clock (Date, RFC 9110 §6.6.1).
  public var date: WallTime?
  /// The number of requests sent for this response: 1 plus one for each redirect and retry.
  public var requestCount: Int
  public var body: FetchBody

  public init(
    url: URL, contentType: String?, bodyOffset: Int64, bodyByteCount: Int64?, resourceByteCount: Int64?,
    supportsRanges: Bool, date: WallTime? = nil, requestCount: Int = 1, body: FetchBody
  ) {
    self.url = url
    self.contentType = contentType
    self.bodyOffset = bodyOffset
    self.bodyByteCount = bodyByteCount
    self.resourceByteCount = resourceByteCount
    self.supportsRanges = supportsRanges
    self.date = date
    self.requestCount = requestCount
    self.body = body
  }
}

/// The bytes of a body, pulled chunk by chunk: nothing more is read from the network than is asked for here and
/// what the socket's buffers hold. One consumer. Cancelling the task that pulls ends the transfer.
public struct FetchBody: AsyncSequence, Sendable {
  public typealias Element = [UInt8]

  private let pull: @Sendable () async throws -> [UInt8]?

  /// `pull` gives the next chunk, never an empty one, or nil at the end; it throws `ReelError` or
  /// `CancellationError`.
  public init(pull: @escaping @Sendable () async throws -> [UInt8]?) {
    self.pull = pull
  }

  public func makeAsyncIterator() -> Iterator { Iterator(pull: pull) }

  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let pull: @Sendable () async throws -> [UInt8]?

    public mutating func next() async throws -> [UInt8]? { try await pull() }
  }

  /// All bytes of the body. Throws `ReelError` of kind `badManifest` where there are more than `limit`.
  public func collect(upTo limit: Int) async throws -> [UInt8] {
    var bytes: [UInt8] = []
    for try await chunk in self {
      guard bytes.count + chunk.count <= limit else {
        throw ReelError(.badManifest, "larger than the limit of \(limit) bytes")
      }
      bytes.append(contentsOf: chunk)
    }
    return bytes
  }
}

/// How one transfer went.
public struct RequestMetrics: Sendable, Hashable {
  public var url: URL
  public var purpose: FetchPurpose
  /// HTTP status of the last answer; nil for a file, or where none came.
  public var status: Int?
  /// From the call to the first byte of the body.
  public var timeToFirstByte: Duration?
  /// From the first byte of the body to the end of the transfer.
  public var transferTime: Duration
  /// Body bytes that came over the wire, before decompression.
  public var byteCount: Int64
  /// True where no connection had to be opened for it; nil where that is not known.
  public var reusedConnection: Bool?
  public var redirectCount: Int
  /// Requests sent, retries and redirects included.
  public var requestCount: Int

  public init(
    url: URL, purpose: FetchPurpose, status: Int?, timeToFirstByte: Duration?, transferTime: Duration,
    byteCount: Int64, reusedConnection: Bool?, redirectCount: Int, requestCount: Int
  ) {
    self.url = url
    self.purpose = purpose
    self.status = status
    self.timeToFirstByte = timeToFirstByte
    self.transferTime = transferTime
    self.byteCount = byteCount
    self.reusedConnection = reusedConnection
    self.redirectCount = redirectCount
    self.requestCount = requestCount
  }
}

/// Gets bytes by URL. Injected from the top, so that whatever stands above it is tested without a network.
public protocol Fetching: Sendable {
  /// Sends the request and returns when the head of a successful answer is there.
  ///
  /// Throws `ReelError` (`server`, `network`, `timedOut`, `noSuchFile`, `unsupported` for a scheme that is not
  /// served) with the URL in it, or `CancellationError`.
  func fetch(_ request: FetchRequest) async throws -> FetchResponse
}
