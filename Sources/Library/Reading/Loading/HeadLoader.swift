internal import Foundation
package import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
package import ReelSources

/// Makes the requests of the start of an item and discards the answers, so that a store in front of the network has them
/// for a player.
///
/// It opens no container and no decoder, and requests no keys: those are not stored. A live stream has no head, because its
/// start moves.
package struct HeadLoader: Sendable {
  /// What was requested.
  package struct Head: Sendable {
    /// The requests in order, the source's first, each for the part of the answer that was read.
    package var requests: [FetchRequest]
    /// The number of bytes of the answers that were read, from a store or the network.
    package var byteCount: Int64
    /// The bit rate of the rung, in bits per second; nil for a media file, and if the manifest states none.
    package var bitRate: Int?
  }

  private let log: RequestLog
  private let configuration: LoadingConfiguration
  private let scope: LoadScope
  private let recorder: StartupRecorder
  private let controller: RungController
  private let playsAudio: Bool
  private let duration: Double
  private let byteLimit: Int64

  /// - Parameters:
  ///   - controller: Chooses the rung of video, as the player would that starts the item.
  ///   - playsAudio: True to load the start of separate audio too.
  ///   - duration: The media to load.
  ///   - byteLimit: The number of bytes at which loading stops.
  package init(
    fetcher: any Fetching, configuration: LoadingConfiguration, scope: LoadScope, clock: any MonotonicClock,
    controller: RungController, playsAudio: Bool, duration: Duration, byteLimit: Int64
  ) {
    log = RequestLog(fetcher)
    var configuration = configuration
    // A file that must be loaded as a whole to be read has no head.
    configuration.spoolByteLimit = 0
    configuration.asksServersForTime = false
    self.configuration = configuration
    self.scope = scope
    recorder = StartupRecorder(clock: clock)
    self.controller = controller
    self.playsAudio = playsAudio
    self.duration = duration / .seconds(1)
    self.byteLimit = byteLimit
  }

  /// Loads the head of a source. Call it once.
  ///
  /// - Parameter mediaDuration: The duration of the media; nil if unknown.
  ///
  /// Throws `ReelError`, or `CancellationError`. What was fetched until then stays in the store.
  package func load(_ source: MediaSource, lasting mediaDuration: Duration?) async throws -> Head {
    let fetcher = ConfinedFetcher(
      base: log, source: source.url, headers: configuration.headers(of: source.url))
    let manifests = ManifestLoader(
      fetcher: fetcher, configuration: configuration, scope: scope, recorder: recorder)
    var bitRate: Int?
    switch try await SourceResolver(manifests: manifests).resolve(source) {
    case .resource(let resource):
      try await load(resource, lasting: mediaDuration.map { $0 / .seconds(1) }, manifests)
    case .presentation(let resolved): bitRate = try await load(resolved, manifests)
    }
    return Head(requests: log.requests, byteCount: log.byteCount, bitRate: bitRate)
  }

  // MARK: - Private

  /// The bytes of a second of a media file whose duration is unknown: 4 Mbit/s.
  private static let assumedByteRate = 500_000.0

  // MARK: Manifests

  /// Returns the bit rate of the rung of video.
  private func load(_ resolved: ResolvedPresentation, _ manifests: ManifestLoader) async throws -> Int? {
    let presentation = resolved.presentation
    guard !presentation.isLive else { throw Self.live(at: resolved.url) }
    let isSeparate = presentation.playsSeparateAudio(configuration)
    let role = ReaderRole.main(wantsAudio: !isSeparate)
    guard let period = presentation.periods(carrying: role).first else { return nil }
    let ladder = try RungMatcher.ladder(of: period, role: role, configuration: configuration)
    guard let rung = controller.choose(among: ladder, segmentDuration: nil) else { return nil }
    try await load(rung, of: resolved, manifests)
    if isSeparate, playsAudio, let audio = period.audioRung(beside: rung, configuration) {
      try await load(audio, of: resolved, manifests)
    }
    return rung.bitsPerSecond ?? rung.averageBitsPerSecond
  }

  /// Loads the playlist or index of a rung, its initialization, and its first segments.
  private func load(_ rung: Rung, of resolved: ResolvedPresentation, _ manifests: ManifestLoader) async throws
  {
    let initializations = InitializationStore()
    let found = try await manifests.opening(
      of: rung, variables: resolved.presentation.variables, initializations: initializations,
      location: ServiceLocation())
    let transfer = found.transfer?.claim()
    defer { transfer?.close() }
    guard found.live == nil else { throw Self.live(at: found.playlistURL ?? resolved.url) }
    let list = found.list
    var index = 0
    if let start = found.startOffset ?? resolved.presentation.startOffset {
      index = list.index(at: start.position(in: .zero..<list.end)) ?? 0
    }
    var (seconds, known) = (duration, Set<InitializationReference>())
    while index < list.count, seconds > 0, log.byteCount < byteLimit {
      let segment = list[index]
      index += 1
      if segment.isGap { continue }
      if let first = segment.initialization, initializations[first] == nil, known.insert(first).inserted {
        let request = FetchRequest(url: first.url, range: first.byteRange, purpose: .initialization)
        try await read(try await manifests.fetcher.fetch(request).ranged(first.byteRange))
      }
      var byteCount: Int64?
      let body: FetchBody
      if let part = transfer?.part(segment.byteRange) {
        body = part.body
        byteCount = segment.byteRange?.length
      } else {
        let response = try await manifests.fetcher.fetch(
          FetchRequest(url: segment.url, range: segment.byteRange, purpose: .segment))
        // Without a validator, a part of an answer is of no use.
        if response.validator != nil { byteCount = segment.byteRange?.length ?? response.bodyByteCount }
        body = response.ranged(segment.byteRange)
      }
      // Of a segment that is longer than needed, its share. That of a file without an index is unknown.
      let length = segment.duration.seconds
      let share = length > seconds ? seconds / length : 1
      let limit = length > 0 ? byteCount.map { Double($0) * share } : seconds * Self.assumedByteRate
      try await read(body, upTo: limit.map { Int64($0.rounded(.up)) })
      seconds -= length > 0 ? length : seconds
    }
  }

  // MARK: Files

  /// Loads the index of a file and its first bytes.
  private func load(
    _ resource: MediaResource, lasting mediaSeconds: Double?, _ manifests: ManifestLoader
  ) async throws {
    guard case .response(let response, let bytes) = resource.access else {
      throw ReelError(.unsupported, "a local file has no head", at: resource.name)
    }
    let index = resource.format == .mp4 ? Self.place(ofIndexIn: bytes) : nil
    let size = response.resourceByteCount ?? response.bodyByteCount
    let media = size.flatMap { size in
      mediaSeconds.flatMap { $0 > 0 ? Double(size) / $0 * duration : nil }
    }
    let count =
      (index?.isFirst == true ? index?.end ?? 0 : 0)
      + Int64(media ?? duration * Self.assumedByteRate)
    try await read(response.body, upTo: max(count - Int64(bytes.count), 0))
    if let index, !index.isFirst {
      let rest = ByteRange(offset: index.end, length: nil)
      try await read(
        try await manifests.fetcher.fetch(FetchRequest(url: response.url, range: rest, purpose: .segment))
          .ranged(rest))
    }
  }

  /// Returns the end of the index of an MP4 file if it comes first, or else the end of the media, where it follows; nil if
  /// the first bytes don't tell.
  private static func place(ofIndexIn bytes: [UInt8]) -> (isFirst: Bool, end: Int64)? {
    var end = 0
    while let header = MP4BoxHeader(bytes.dropFirst(end)), let byteCount = header.byteCount,
      !header.isMalformed, byteCount < 1 << 40
    {
      end += Int(byteCount)
      if header.type == "moov" { return (true, Int64(end)) }
      if header.type == "mdat" { return (false, Int64(end)) }
    }
    return nil
  }

  /// Reads and discards a body, up to a number of bytes and the limit of the head.
  private func read(_ body: FetchBody, upTo byteCount: Int64? = nil) async throws {
    defer { body.close() }
    var left = byteCount ?? .max
    while left > 0, log.byteCount < byteLimit, let chunk = try await body.next() {
      left -= Int64(chunk.count)
    }
  }

  private static func live(at url: URL) -> ReelError {
    ReelError(.unsupported, "a live stream has no head", at: url.reelName)
  }
}

/// Notes the requests of a head, as they reach the store, and how far their answers are read.
private final class RequestLog: Fetching {
  private struct Entry {
    let request: FetchRequest
    var bodyOffset: Int64 = 0
    var byteCount: Int64 = 0
    /// False for a part that is of no use to a store, because another part can't be joined with it.
    var isOfUse = false
    var isWhole = false
  }

  private let base: any Fetching
  private let entries = Locked<[Entry]>([])

  init(_ base: any Fetching) { self.base = base }

  /// The requests in order, each for as much as was read.
  var requests: [FetchRequest] {
    // Those that failed were repeated elsewhere.
    entries.withLock { $0 }.filter { $0.isWhole || $0.byteCount > 0 }.map { entry in
      var request = FetchRequest(
        url: entry.request.url, range: entry.request.range, headers: entry.request.headers,
        purpose: entry.request.purpose)
      request.source = entry.request.source
      if !entry.isWhole, entry.isOfUse {
        request.range = ByteRange(offset: entry.bodyOffset, length: entry.byteCount)
      }
      return request
    }
  }

  var byteCount: Int64 { entries.withLock { $0.reduce(0) { $0 + $1.byteCount } } }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let number = entries.withLock { entries in
      entries.append(Entry(request: request))
      return entries.count - 1
    }
    let response = try await base.fetch(request)
    let size = response.bodyByteCount
    entries.withLock { entries in
      entries[number].bodyOffset = response.bodyOffset
      entries[number].isOfUse = response.validator != nil
    }
    return response.wrappingBody { [self] body in
      let chunk = try await body.next()
      entries.withLock { entries in
        entries[number].byteCount += Int64(chunk?.count ?? 0)
        entries[number].isWhole = chunk == nil || entries[number].byteCount == size
      }
      return chunk
    }
  }
}
