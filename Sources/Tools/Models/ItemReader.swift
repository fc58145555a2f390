internal import Foundation
package import HTTPTypes
package import Logging
package import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
internal import ReelReading
internal import ReelSimulation
package import ReelSources

/// Reads the facts of items: their manifests, the sizes of their segments, and where their first frames end.
package struct ItemReader: Sendable {
  private let fetcher: any Fetching
  private let configuration: LoadingConfiguration
  private let logger: Logger

  /// The number of sizes that are asked for at once, and the most bytes of a segment whose size only its bytes tell.
  private static let concurrency = 8
  private static let byteLimit = 256 << 20
  /// The duration of a segment of which the manifest states none, in seconds.
  private static let leastDuration = 0.001

  package init(fetcher: any Fetching, configuration: LoadingConfiguration, logger: Logger) {
    self.fetcher = fetcher
    var configuration = configuration
    // A local file is requested like one of a server.
    configuration.fetchesFiles = true
    self.configuration = configuration
    self.logger = logger
  }

  /// Reads an item.
  ///
  /// - Parameters:
  ///   - headers: Header fields for its requests.
  ///   - reach: The media that a walk can reach, in seconds.
  /// - Throws: `ReelError` if it can't be read or has no frame, or `CancellationError`.
  package func facts(
    of source: MediaSource, headers: HTTPFields = [:], reach: Double
  ) async throws -> ItemFacts {
    var configuration = configuration
    configuration.itemHeaders = headers
    let ranges = RangeLog(fetcher)
    let documents = Locked<[LoadedManifest.Document]>([])
    let opener = TrackOpener(fetcher: ranges, configuration: configuration, logger: logger)
    return try await opener.use(
      source, readsAhead: false, recording: { document in documents.withLock { $0.append(document) } }
    ) { opening in
      let start = try await start(of: opening)
      guard opening.isPresentation else { return try await file(source, start, ranges) }
      let stated = try opening.manifest(documents).presentation
      let loaded = try await opening.loadManifest(documents)
      return try await presentation(loaded, stated, start, reach, source.name, configuration)
    }
  }

  // MARK: - Private

  /// The start of Reel's player.
  private struct Start: Sendable {
    var frameEnd: Int64?
    var rung: String?
    var duration: Double?
    var codec: VideoCodec?
    var pixelCount = 0
    var frameDuration = 1.0 / 30
    var reorderDepth = 0
  }

  private func start(of opening: OpenSource) async throws -> Start {
    try await BlockingThread.run(named: "facts", on: opening.context.scope.runtime, cachesMemory: true) {
      let reader = FrameReader(opening, beginsAsPlayer: true)
      guard let frame = try reader.firstFrame() else { throw ReelError(.badMedia, "no frame in the media") }
      var start = Start()
      start.frameEnd = reader.firstFrameEnd
      start.rung = reader.track?.rung.id
      start.duration = opening.isPresentation ? nil : reader.source.streams.duration?.seconds
      start.codec = frame.stream.videoCodec
      start.pixelCount = frame.size.width * frame.size.height
      start.reorderDepth = reader.reorderDepth
      if let rate = frame.frameRate?.value, rate > 1 { start.frameDuration = 1 / rate }
      return start
    }
  }

  private func describe(_ facts: inout ItemFacts, _ start: Start) {
    (facts.codec, facts.pixelCount, facts.frameDuration) = (
      start.codec, start.pixelCount, start.frameDuration
    )
    facts.reorderDelay = Double(start.reorderDepth) * start.frameDuration
  }

  // MARK: Presentations

  private func presentation(
    _ loaded: LoadedManifest, _ stated: Presentation, _ start: Start, _ reach: Double, _ name: String,
    _ configuration: LoadingConfiguration
  ) async throws -> ItemFacts {
    guard let place = loaded.presentation.periods.firstIndex(where: \.hasVideo) else {
      throw ReelError(.badMedia, "no video in the manifest", at: name)
    }
    let period = loaded.presentation.periods[place]
    let group = period.trackGroups.firstIndex { group in
      group.kind == .video && (start.rung == nil || group.rungs.contains { $0.id == start.rung })
    }
    guard let group else { throw ReelError(.badMedia, "no video in the manifest", at: name) }
    let rungs = period.trackGroups[group].rungs
    let scope = LoadScope()
    defer { scope.cancel() }
    let fetcher = SegmentFetcher(
      loaded, configuration: configuration, name: name, scope: scope, logger: logger)
    var video: [ItemFacts.Rung] = []
    for (index, rung) in rungs.enumerated() {
      if let facts = try await self.rung(rung, at: [place, group, index], in: loaded, stated, fetcher, reach)
      {
        video.append(facts)
      }
    }
    let manifest = LinkPlayback.Request(
      loaded.url, byteCount: Int64(loaded.documents.first?.bytes.count ?? 1), purpose: .source)
    var facts = ItemFacts(
      loaded.presentation.format == .hls ? .hls : .dash, manifest: manifest, video: video)
    describe(&facts, start)
    facts.firstFrameRung = video.firstIndex { $0.id == start.rung } ?? 0
    guard let first = video.first else { throw ReelError(.badMedia, "no segments of video", at: name) }
    let startRung = rungs.first { $0.id == start.rung } ?? rungs[0]
    let head = (video.indices.contains(facts.firstFrameRung) ? video[facts.firstFrameRung] : first)
      .initialization?.byteCount
    facts.firstFrameByteCount = start.frameEnd.map { max(1, $0 - (head ?? 0)) }
    facts.firstSoundByteCount = try await firstSound(of: startRung, fetcher, name)
    guard let audio = period.audioRung(beside: startRung, configuration) else { return facts }
    for (index, group) in period.trackGroups.enumerated() where group.kind == .audio {
      guard let rung = group.rungs.firstIndex(where: { $0.id == audio.id }),
        rungs[0].audioGroup.map({ $0 == group.id }) ?? true
      else { continue }
      facts.audio = try await self.rung(
        group.rungs[rung], at: [place, index, rung], in: loaded, stated, fetcher, reach)
      break
    }
    return facts
  }

  /// The facts of a rung; nil if it has no segments.
  private func rung(
    _ rung: Rung, at place: [Int], in loaded: LoadedManifest, _ stated: Presentation,
    _ fetcher: SegmentFetcher, _ reach: Double
  ) async throws -> ItemFacts.Rung? {
    guard case .segments(let list) = rung.media, let first = list.first else { return nil }
    let end = first.start.seconds + reach
    let references = list.prefix { $0.start.seconds < end }.filter { !$0.isGap }
    let found = try await Patience.gather(
      count: references.count, neededCount: references.count, concurrency: Self.concurrency,
      clock: SystemMonotonicClock()
    ) { index -> Int64? in
      do {
        return try await byteCount(of: references[index], fetcher)
      } catch let error as ReelError where index > 0 {
        logger.debug("segment \(index) can't be read", metadata: ["error": "\(error)"])
        return nil
      }
    }
    // A player comes as far as the segment that is missing.
    var sizes: [Int64] = []
    while let size = found[sizes.count] ?? nil { sizes.append(size) }
    var facts = ItemFacts.Rung(
      zip(references, sizes).map { segment, size in
        LinkPlayback.Segment(
          segment.url.part(segment.byteRange),
          [.init(byteCount: size, duration: max(segment.duration.seconds, Self.leastDuration))])
      })
    (facts.id, facts.bitsPerSecond) = (rung.id, rung.bitsPerSecond)
    if let url = loaded.playlistURLs[place],
      let document = loaded.documents.dropFirst().first(where: { $0.url == url })
    {
      facts.playlist = LinkPlayback.Request(url, byteCount: Int64(document.bytes.count), purpose: .manifest)
    }
    if case .index(let reference) = stated.rung(at: place).media {
      facts.index = LinkPlayback.Request(
        reference.url.part(reference.indexRange), byteCount: reference.indexRange?.length ?? 1000,
        purpose: .manifest)
    }
    if let reference = first.initialization {
      let length =
        if let length = reference.byteRange?.length { length } else {
          Int64(try await fetcher.initialization(of: first).count)
        }
      facts.initialization = LinkPlayback.Request(
        reference.url.part(reference.byteRange), byteCount: length, purpose: .initialization)
    }
    return facts
  }

  /// The bytes of a rung's first segment up to the end of the first audio in it; nil if there is none.
  private func firstSound(
    of rung: Rung, _ fetcher: SegmentFetcher, _ name: String
  ) async throws -> Int64? {
    guard case .segments(let list) = rung.media, let first = list.first else { return nil }
    let head = first.initialization == nil ? [] : try await fetcher.initialization(of: first)
    let bytes = head + (try await fetcher.content(of: first, after: head, upTo: Self.byteLimit).bytes)
    let kind = SourceSniffer.kind(of: Array(bytes.prefix(SourceSniffer.largestByteCount)))
    guard case .media(let format) = kind else { return nil }
    var options = ContainerReader.Options()
    (options.isSeekable, options.wantsAudio) = (false, true)
    return try await BlockingThread.run(named: "facts", cachesMemory: true) { [options] in
      // Encrypted media, or a codec that isn't known, tells nothing.
      guard
        let container = try? ContainerReader(
          source: MemoryByteSource(bytes), format: format, options: options, name: name, logger: logger)
      else { return nil }
      while let unit = try? container.next() {
        switch unit {
        case .video: continue
        case .audio(let packet):
          return packet.position.map { max(1, $0 + Int64(packet.byteCount) - Int64(head.count)) }
        case .programChanged, .end: return nil
        }
      }
      return nil
    }
  }

  /// The size of a segment: as it is stated, or else of its bytes.
  private func byteCount(of segment: SegmentReference, _ fetcher: SegmentFetcher) async throws -> Int64 {
    if let count = try await fetcher.byteCount(of: segment) { return count }
    return Int64(try await fetcher.content(of: segment, after: [], upTo: Self.byteLimit).bytes.count)
  }

  // MARK: Files

  /// A file is one answer. If its index is at the end, that is requested before it.
  private func file(_ source: MediaSource, _ start: Start, _ ranges: RangeLog) async throws -> ItemFacts {
    guard let url = source.url, let byteCount = ranges.byteCount, byteCount > 0 else {
      throw ReelError(.unsupported, "the size of the file is not known", at: source.name)
    }
    guard let duration = start.duration, duration > 0 else {
      throw ReelError(.unsupported, "the duration of the file is not known", at: source.name)
    }
    let frameEnd = min(max(start.frameEnd ?? byteCount, 1), byteCount)
    var rung = ItemFacts.Rung([
      LinkPlayback.Segment(
        url,
        [
          .init(byteCount: frameEnd, duration: start.frameDuration),
          .init(byteCount: byteCount - frameEnd, duration: max(0, duration - start.frameDuration)),
        ])
    ])
    if let offset = ranges.offsets.first(where: { $0 > frameEnd && $0 > byteCount / 2 }) {
      rung.index = LinkPlayback.Request(
        url.part(ByteRange(offset: offset, length: nil)), byteCount: byteCount - offset, purpose: .manifest)
    }
    var facts = ItemFacts(.file, manifest: nil, video: [rung])
    describe(&facts, start)
    facts.firstFrameByteCount = frameEnd
    return facts
  }
}

/// A fetcher in front of another that notes where ranges begin, and the size of the source.
private final class RangeLog: Fetching {
  private struct State {
    var offsets: [Int64] = []
    var byteCount: Int64?
  }

  private let base: any Fetching
  private let state = Locked(State())

  init(_ base: any Fetching) { self.base = base }

  /// The offsets of the ranges that were requested, in order.
  var offsets: [Int64] { state.withLock { $0.offsets } }
  var byteCount: Int64? { state.withLock { $0.byteCount } }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    if let offset = request.range?.offset, offset > 0 { state.withLock { $0.offsets.append(offset) } }
    let response = try await base.fetch(request)
    state.withLock { $0.byteCount = $0.byteCount ?? response.resourceByteCount ?? response.bodyByteCount }
    return response
  }
}

extension Presentation {
  fileprivate func rung(at place: [Int]) -> Rung {
    periods[place[0]].trackGroups[place[1]].rungs[place[2]]
  }
}

extension URL {
  /// The URL with a fragment that distinguishes a range of the resource from others.
  fileprivate func part(_ range: ByteRange?) -> URL {
    guard let range, var components = URLComponents(url: self, resolvingAgainstBaseURL: true) else {
      return self
    }
    components.fragment = "\(range.offset)+\(range.length.map(String.init) ?? "")"
    return components.url ?? self
  }
}
