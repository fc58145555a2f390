import Foundation
import ReelCore

/// A store in memory and without a bound, in front of a fetcher that says how large its resources are.
final class MemoryStore: MediaStoring {
  private struct Resource {
    var bytes: [UInt8]
    var known = IndexSet()
  }

  private let base: any Fetching
  private let keeps: @Sendable (FetchRequest) -> Bool
  private let resources = Locked<[URL: Resource]>([:])

  /// - Parameter keeps: Returns false for a request whose answer is not stored.
  init(in front: any Fetching, keeps: @escaping @Sendable (FetchRequest) -> Bool = { _ in true }) {
    base = front
    self.keeps = keeps
  }

  /// Stores a whole resource.
  func put(_ bytes: [UInt8], at url: URL) {
    resources.withLock {
      $0[url] = Resource(bytes: bytes, known: IndexSet(integersIn: bytes.indices))
    }
  }

  func stores(_ request: FetchRequest) -> Bool {
    stored(request).map { $0.bytes.endIndex == $0.end } ?? false
  }

  func storedFetch(of request: FetchRequest) -> (@Sendable () async throws -> FetchResponse)? {
    guard stores(request) else { return nil }
    return { [self] in try await fetch(request) }
  }

  var storedByteCount: Int64 { resources.withLock { $0.values.reduce(0) { $0 + Int64($1.known.count) } } }

  func trim(toByteCount byteCount: Int64) async {
    while storedByteCount > byteCount { resources.withLock { _ = $0.popFirst() } }
  }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    guard let (bytes, end, size) = stored(request) else {
      return keeping(try await base.fetch(request), to: request)
    }
    let (left, given, rest) = (Locked(bytes), Locked(Int64(0)), Locked<FetchBody?>(nil))
    let next = bytes.endIndex
    var response = FetchResponse(
      url: request.url, contentType: nil, bodyOffset: Int64(bytes.startIndex),
      bodyByteCount: Int64(end - bytes.startIndex), resourceByteCount: Int64(size), supportsRanges: true,
      body: FetchBody { [self] in
        let chunk = left.withLock { left in
          let chunk = Array(left.prefix(4 << 10))
          left = left.dropFirst(chunk.count)
          return chunk
        }
        if !chunk.isEmpty {
          given.withLock { $0 += Int64(chunk.count) }
          return chunk
        }
        guard next < end else { return nil }
        if let body = rest.withLock({ $0 }) { return try await body.next() }
        var further = request
        further.range = ByteRange(offset: Int64(next), length: Int64(end - next))
        let body = keeping(try await base.fetch(further), to: further).body
        rest.withLock { $0 = body }
        return try await body.next()
      })
    response.validator = Self.validator
    response.requestCount = 0
    response.storedByteCount = { given.withLock { $0 } }
    return response
  }

  // MARK: - Private

  /// Parts of an answer are of use.
  private static let validator = "\"1\""

  /// Returns the stored bytes from the request's first one on, the end of its range, and the size of the resource.
  private func stored(_ request: FetchRequest) -> (bytes: ArraySlice<UInt8>, end: Int, size: Int)? {
    resources.withLock { resources in
      guard let resource = resources[request.url] else { return nil }
      let size = resource.bytes.count
      let start = Int(request.range?.offset ?? 0)
      let end = min(request.range?.end.map { Int($0) } ?? size, size)
      guard start < end, let run = resource.known.rangeView.first(where: { $0.contains(start) }) else {
        return nil
      }
      return (resource.bytes[start..<min(run.upperBound, end)], end, size)
    }
  }

  private func keeping(_ response: FetchResponse, to request: FetchRequest) -> FetchResponse {
    guard keeps(request), let size = response.resourceByteCount.map({ Int($0) }) else { return response }
    let place = Locked(Int(response.bodyOffset))
    var response = response
    response.validator = Self.validator
    return response.wrappingBody { [self] body in
      guard let chunk = try await body.next() else { return nil }
      let range = place.withLock { place in
        defer { place += chunk.count }
        return place..<place + chunk.count
      }
      resources.withLock { resources in
        var resource =
          resources.removeValue(forKey: request.url) ?? Resource(bytes: [UInt8](repeating: 0, count: size))
        resource.bytes.replaceSubrange(range, with: chunk)
        resource.known.insert(integersIn: range)
        resources[request.url] = resource
      }
      return chunk
    }
  }
}
