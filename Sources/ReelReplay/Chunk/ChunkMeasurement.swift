internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
internal import ReelPlayback

/// Measures the chunks of one source.
struct ChunkMeasurement: Sendable {
  /// The largest media file, and the largest first segment: 512 MiB. They are held in memory.
  static let byteLimit = 512 << 20

  private let source: MediaSource
  private let fetcher: any Fetching
  private let loading: LoadingConfiguration
  private let logger: Logger

  init(_ source: MediaSource, fetcher: any Fetching, loading: LoadingConfiguration, logger: Logger) {
    self.source = source
    self.fetcher = fetcher
    var loading = loading
    loading.fetchesFiles = true
    self.loading = loading
    self.logger = logger
  }

  /// Throws `ReelError` or `CancellationError`.
  func run() async throws -> ItemChunks {
    guard case .url(let url) = source else {
      throw ReelError(.unsupported, "standard input can be read only once")
    }
    let request = FetchRequest(url: url, headers: loading.headers, purpose: .source)
    let body = try await fetcher.fetch(request).body
    var bytes: [UInt8] = []
    while bytes.count < SourceSniffer.byteCount, let part = try await body.next() { bytes += part }
    switch SourceSniffer.kind(of: bytes) {
    case .manifest:
      let loader = ManifestLoader(fetcher: fetcher, configuration: loading, logger: logger)
      return try await chunks(of: try await loader.load(source))
    case .media(let format):
      bytes += try await body.collect(upTo: Self.byteLimit - bytes.count)
      return try MediaFileChunks(bytes, format: format, name: source.name, logger: logger).chunks
    case .other(let what):
      throw ReelError(.badMedia, "not media: \(what)")
    }
  }

  // MARK: - Manifests

  /// A rung, as far as the periods have been gone through.
  private struct Track {
    let rung: Rung
    var headerByteCount: Int64 = 0
    var headerRequestCount = 0
    var chunks: [ItemChunks.Chunk] = []
  }

  private func chunks(of manifest: LoadedManifest) async throws -> ItemChunks {
    let presentation = manifest.presentation
    guard !presentation.isLive else {
      throw ReelError(.unsupported, "the chunks of a live source can't be measured")
    }
    let selector = RungSelector(
      bandwidthCap: loading.bandwidthCap, maximumHeight: loading.maximumHeight,
      keyProvider: loading.keyProvider)
    var tracks: [Track] = []
    var failure: (any Error)?
    for (index, period) in presentation.periods.enumerated() {
      let ladder: [Rung]
      do throws(ReelError) {
        ladder = try selector.ladder(in: period)
      } catch {
        failure = failure ?? error
        continue
      }
      if tracks.isEmpty {
        for rung in ladder.sorted(by: { $0.chunkBitRate < $1.chunkBitRate }) {
          do {
            tracks.append(try await begin(rung, periodIndex: index, manifest))
          } catch let error as ReelError {
            // Another rung may be readable.
            failure = failure ?? manifest.failure(ofRung: rung.id, periodIndex: index) ?? error
          }
        }
      } else {
        for place in tracks.indices {
          guard let rung = ladder.nearest(to: tracks[place].rung) else { continue }
          let list = try segments(of: rung, periodIndex: index, manifest)
          tracks[place].chunks += try await chunks(of: list, manifest.fetcher)
        }
      }
    }
    guard let lowest = tracks.first else { throw failure ?? ReelError(.unsupported, "no tracks to play") }
    let durations = lowest.chunks.map(\.duration)
    let rungs = tracks.filter { $0.chunks.count == durations.count }.map { track in
      ItemChunks.Rung(
        id: track.rung.id, bitRate: track.rung.chunkBitRate, headerByteCount: track.headerByteCount,
        headerRequestCount: track.headerRequestCount,
        chunks: zip(track.chunks, durations).map { chunk, duration in
          var chunk = chunk
          chunk.duration = duration
          return chunk
        })
    }
    return ItemChunks(manifestByteCount: Int64(manifest.documents.first?.bytes.count ?? 0), rungs: rungs)
  }

  /// The header of a rung and the chunks of its first period.
  private func begin(_ rung: Rung, periodIndex: Int, _ manifest: LoadedManifest) async throws -> Track {
    var track = Track(rung: rung)
    if let playlist = manifest.playlist(ofVideoRung: rung.id, periodIndex: periodIndex) {
      track.headerByteCount += Int64(playlist.bytes.count)
      track.headerRequestCount += 1
    }
    let list = try segments(of: rung, periodIndex: periodIndex, manifest)
    let fetcher = manifest.fetcher
    let first = list[0]
    var head: [UInt8] = []
    if let initialization = first.initialization {
      head = try await bytes(initialization.url, initialization.byteRange, .initialization, fetcher)
      var count = Int64(head.count)
      if manifest.presentation.format == .dash, initialization.url == first.url, let range = first.byteRange {
        // The index is between the two; all of it comes in one transfer.
        count = max(count, range.offset)
      }
      track.headerByteCount += count
      track.headerRequestCount += 1
    }
    track.chunks = try await chunks(of: list, fetcher)
    if first.encryption == nil, !first.isGap {
      let media = try await bytes(first.url, first.byteRange, .segment, fetcher)
      track.chunks[0].byteCount = Int64(media.count)
      track.chunks[0].startByteCount = startByteCount(of: media, behind: head)
    }
    return track
  }

  private func segments(of rung: Rung, periodIndex: Int, _ manifest: LoadedManifest) throws(ReelError)
    -> SegmentList
  {
    guard case .segments(let list) = rung.media, !list.isEmpty else {
      throw manifest.failure(ofRung: rung.id, periodIndex: periodIndex)
        ?? ReelError(.badManifest, "rung \(rung.id) has no segments")
    }
    return list
  }

  private func chunks(of list: SegmentList, _ fetcher: any Fetching) async throws -> [ItemChunks.Chunk] {
    var chunks: [ItemChunks.Chunk] = []
    for segment in list {
      chunks.append(
        ItemChunks.Chunk(
          duration: segment.duration.chunkDuration,
          byteCount: segment.isGap ? 0 : try await byteCount(segment.url, segment.byteRange, fetcher)))
    }
    return chunks
  }

  private func byteCount(_ url: URL, _ range: ByteRange?, _ fetcher: any Fetching) async throws -> Int64 {
    if let length = range?.length { return length }
    if range == nil {
      let request = FetchRequest(.head, url: url, headers: loading.headers, purpose: .segment)
      // Some servers refuse HEAD.
      if let count = try? await fetcher.fetch(request).bodyByteCount { return count }
      try Task.checkCancellation()
    }
    let response = try await fetcher.fetch(
      FetchRequest(url: url, range: range, headers: loading.headers, purpose: .segment))
    if let count = response.bodyByteCount { return count }
    var count: Int64 = 0
    for try await part in response.body { count += Int64(part.count) }
    return count
  }

  private func bytes(
    _ url: URL, _ range: ByteRange?, _ purpose: FetchPurpose, _ fetcher: any Fetching
  ) async throws -> [UInt8] {
    let response = try await fetcher.fetch(
      FetchRequest(url: url, range: range, headers: loading.headers, purpose: purpose))
    let bytes = try await response.body.collect(upTo: Self.byteLimit)
    guard let range, response.bodyOffset < range.offset else { return bytes }
    // The server sent the whole file.
    let part = bytes.dropFirst(Int(clamping: range.offset - response.bodyOffset))
    return Array(part.prefix(Int(clamping: range.length ?? .max)))
  }

  /// The bytes of a segment up to the end of its second frame; nil if it can't be demuxed.
  private func startByteCount(of segment: [UInt8], behind head: [UInt8]) -> Int64? {
    let bytes = head + segment
    guard case .media(let format) = SourceSniffer.kind(of: bytes) else { return nil }
    var options = ContainerReader.Options()
    options.isSeekable = false
    let reader = try? ContainerReader(
      source: ByteArraySource(bytes), format: format, options: options, name: source.name, logger: logger)
    guard let reader else { return nil }
    var frameCount = 0
    while frameCount < 2 {
      guard let unit = try? reader.next() else { return nil }
      switch unit {
      case .video: frameCount += 1
      case .audio, .programChanged: continue
      case .end: return frameCount > 0 ? Int64(segment.count) : nil
      }
    }
    return min(max(reader.position - Int64(head.count), 1), Int64(segment.count))
  }
}

extension LoadedManifest {
  /// Why the segments of a video rung are not known.
  fileprivate func failure(ofRung id: String, periodIndex: Int) -> ReelError? {
    failures.first { failure in
      guard failure.periodIndex == periodIndex else { return false }
      let group = presentation.periods[failure.periodIndex].trackGroups[failure.groupIndex]
      return group.kind == .video && group.rungs[failure.rungIndex].id == id
    }?.error
  }
}

extension Rung {
  fileprivate var chunkBitRate: Int { bitsPerSecond ?? averageBitsPerSecond ?? 0 }
}

extension [Rung] {
  /// The same rung in another period: the one with its id, or else that with the nearest bit rate.
  fileprivate func nearest(to rung: Rung) -> Rung? {
    first { $0.id == rung.id }
      ?? self.min { abs($0.chunkBitRate - rung.chunkBitRate) < abs($1.chunkBitRate - rung.chunkBitRate) }
  }
}

extension MediaTime {
  /// To the nanosecond, rounded down.
  fileprivate var chunkDuration: Duration {
    let (whole, rest) = value.quotientAndRemainder(dividingBy: Int64(timescale))
    return .seconds(whole) + .nanoseconds(rest * 1_000_000_000 / Int64(timescale))
  }
}

/// Bytes in memory.
final class ByteArraySource: ByteSource {
  private let bytes: [UInt8]
  private var offset = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var byteCount: Int64? { Int64(bytes.count) }
  var isSeekable: Bool { true }

  func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(buffer.count, bytes.count - offset)
    buffer.copyBytes(from: bytes[offset..<(offset + count)])
    offset += count
    return count
  }

  func seek(to offset: Int64) { self.offset = min(max(Int(clamping: offset), 0), bytes.count) }
}
