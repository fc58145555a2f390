internal import Foundation
internal import HTTPTypes
internal import ReelCore

/// The answers of a recorded start with some things changed, as they would be if findings were mended.
///
/// Bytes that cost nothing are left out of the bodies that cross the link, and put back behind it (`restoring`).
struct ChangedStart: Fetching {
  let recording: StartRecording
  /// The files with another order of bytes, by the URL of the answers.
  private var files: [URL: RewrittenFile] = [:]
  private var texts: [URL: [UInt8]] = [:]
  /// The bytes that cost nothing, in order and without overlaps, by the URL of the answers.
  private var free: [URL: [Range<Int64>]] = [:]
  private var rangeURLs: Set<URL> = []
  private(set) var hiddenFrameCount = 0
  private(set) var dropsRedirects = false
  /// The purposes of requests that servers answer without a wait.
  private(set) var promptPurposes: Set<FetchPurpose> = []
  private(set) var dropsHandshakes = false

  init(_ recording: StartRecording, _ changes: [StartChange]) async throws {
    self.recording = recording
    var freed: [URL: [Range<Int64>]] = [:]
    var removed: [URL: [Range<Int64>]] = [:]
    var moved: Set<URL> = []
    for change in changes {
      switch change {
      case .free(let ranges, let count):
        hiddenFrameCount += count
        Self.add(ranges, to: &freed, recording)
      case .remove(let ranges):
        Self.add(ranges, to: &removed, recording)
      case .moveToFront(let name, _):
        if let url = recording.url(named: name) { moved.insert(url) }
      case .dropRedirects: dropsRedirects = true
      case .dropWaits(let purposes): promptPurposes.formUnion(purposes)
      case .dropHandshakes: dropsHandshakes = true
      case .serveRanges(let name):
        if let url = recording.url(named: name) { rangeURLs.insert(url) }
      case .rewrite(let name, let text):
        if let url = recording.url(named: name) { texts[url] = text }
      }
    }
    for url in moved.union(removed.keys) {
      files[url] = try await RewrittenFile(
        url, removing: (removed[url] ?? []).merged(), movesIndex: moved.contains(url), in: recording)
    }
    for (url, ranges) in freed {
      let places = files[url].map { file in ranges.flatMap { file.places(of: $0) } } ?? ranges
      free[url] = places.merged()
    }
  }

  /// Returns an answer without the bytes that cost nothing.
  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let answer = try await whole(request)
    guard let free = free[answer.url] else { return answer }
    let position = Locked(answer.bodyOffset)
    return answer.wrappingBody { body in
      while let chunk = try await body.next() {
        let start = position.withLock { position in
          defer { position += Int64(chunk.count) }
          return position
        }
        let kept = Self.bytes(of: chunk, at: start, outside: free)
        if !kept.isEmpty { return kept }
      }
      return nil
    }
  }

  /// Puts the bytes that cost nothing back into an answer that has crossed the link.
  ///
  /// - Parameter read: Reads bytes outside of the simulation.
  func restoring(
    _ answer: FetchResponse, to request: FetchRequest,
    _ read: @escaping @Sendable (@escaping @Sendable () async throws -> [UInt8]) throws -> [UInt8]
  ) -> FetchResponse {
    guard let free = free[answer.url], request.method == .get else { return answer }
    let end = answer.bodyByteCount.map { answer.bodyOffset + $0 }
    let state = Locked((position: answer.bodyOffset, rest: ArraySlice<UInt8>()))
    return answer.wrappingBody { [self] body in
      let (position, rest) = state.withLock { $0 }
      if let end, position >= end { return nil }
      if let range = free.first(where: { $0.contains(position) }) {
        let stop = min(range.upperBound, end ?? .max, position + Self.chunkByteCount)
        let part = request.again(range: ByteRange(offset: position, length: stop - position))
        let bytes = try read { [self] in
          try await whole(part, servesRanges: true).body.collect(upTo: Int(stop - position))
        }
        guard !bytes.isEmpty else { return nil }
        state.withLock { $0.position = position + Int64(bytes.count) }
        return bytes
      }
      let chunk: [UInt8]
      if rest.isEmpty {
        guard let next = try await body.next() else { return nil }
        chunk = next
      } else {
        chunk = Array(rest)
      }
      let next = free.first { $0.lowerBound > position }?.lowerBound ?? .max
      let count = Int(min(Int64(chunk.count), next - position))
      state.withLock { state in
        state.position = position + Int64(count)
        state.rest = chunk[count...]
      }
      return Array(chunk[..<count])
    }
  }

  // MARK: - Private

  private static let chunkByteCount: Int64 = 64 << 10

  private static func add(
    _ parts: [StartBytes], to ranges: inout [URL: [Range<Int64>]], _ recording: StartRecording
  ) {
    var known: [String: URL?] = [:]
    for part in parts {
      let url = known[part.url] ?? recording.url(named: part.url)
      known[part.url] = url
      guard let url, let end = part.range.end, end > part.range.offset else { continue }
      ranges[url, default: []].append(part.range.offset..<end)
    }
  }

  private func whole(_ request: FetchRequest, servesRanges: Bool = false) async throws -> FetchResponse {
    let target = recording.target(of: request.url)
    if let text = texts[target] { return Self.answer(text, at: target) }
    if let file = files[target] { return try await file.answer(to: request, in: recording) }
    return try await recording.answer(to: request, servesRanges: servesRanges || rangeURLs.contains(target))
  }

  private static func answer(_ text: [UInt8], at url: URL) -> FetchResponse {
    let rest = Locked<[UInt8]?>(text)
    return FetchResponse(
      url: url, contentType: nil, bodyOffset: 0, bodyByteCount: Int64(text.count),
      resourceByteCount: Int64(text.count), supportsRanges: false,
      body: FetchBody { rest.withLock { $0.take() } })
  }

  private static func bytes(of chunk: [UInt8], at start: Int64, outside free: [Range<Int64>]) -> [UInt8] {
    let end = start + Int64(chunk.count)
    var kept: [UInt8] = []
    var position = start
    for range in free where range.upperBound > start && range.lowerBound < end {
      if range.lowerBound > position { kept += chunk[Int(position - start)..<Int(range.lowerBound - start)] }
      position = max(position, range.upperBound)
    }
    if position < end { kept += chunk[Int(position - start)...] }
    return kept
  }
}
