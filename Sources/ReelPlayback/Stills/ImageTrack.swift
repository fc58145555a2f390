internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// The images of a presentation that stills are taken from: an HLS playlist of images, or a DASH AdaptationSet of them. Each
/// image is a segment, and holds one tile or several, each for a part of the timeline.
struct ImageTrack: Sendable {
  /// An image with its tiles.
  struct Sheet: Sendable {
    let segment: SegmentReference
    let tiles: ImageTiles
    /// The number of tiles before the end of the segment and of the presentation.
    let tileCount: Int
  }

  struct Tile: Sendable {
    /// On the timeline of the presentation.
    let time: MediaTime
    /// The index in `ImageTiles.sheets`.
    let sheet: Int
    /// The index in the sheet.
    let index: Int
  }

  /// The tiles, in order of time, with their sheets.
  struct Listing: Sendable {
    var sheets: [Sheet] = []
    var tiles: [Tile] = []

    /// The tiles as places of key frames.
    var places: [KeyFramePlace] { tiles.map { KeyFramePlace(time: $0.time, seekTime: $0.time) } }

    func tile(at place: KeyFramePlace) -> Tile? {
      var (low, high) = (0, tiles.count)
      while low < high {
        let middle = (low + high) / 2
        if tiles[middle].time < place.time { low = middle + 1 } else { high = middle }
      }
      return low < tiles.count ? tiles[low] : nil
    }
  }

  /// The track in one period.
  struct Part: Sendable {
    let rung: Rung
    let list: SegmentList
    let start: MediaTime
    /// The end of the period, or of the video in HLS; nil if it is not known.
    let end: MediaTime?
  }

  /// In order of time; never empty.
  let parts: [Part]
  /// There is no video: if the images can't be read, nothing can.
  let isAlone: Bool

  var rung: Rung { parts[0].rung }
  /// The end of the video, or of the last image.
  var end: MediaTime {
    parts.map { part in
      part.end.map { isAlone ? min($0, part.list.end) : $0 } ?? part.list.end
    }.max() ?? .zero
  }

  /// More tiles are refused.
  private static let tileLimit = 100_000
  /// More tiles at times that others have are refused.
  private static let repeatLimit = 100_000
  /// A tile that begins with less than this share of its duration left is beyond the end.
  private static let leastShare = 0.01

  /// Lists the tiles up to one for which `isEnough` returns true. Tiles outside of their period are left out.
  ///
  /// - Throws: `ReelError`: `badManifest` for a layout that can't be used, `badMedia` for images that leave out much of the
  ///   video, `unsupported` for more than 100,000 tiles, and for an encryption other than AES-128.
  func listing(until isEnough: (Tile) -> Bool = { _ in false }) throws(ReelError) -> Listing {
    var listing = Listing()
    var repeatCount = 0
    for part in parts where try !list(part, in: &listing, &repeatCount, until: isEnough) { return listing }
    guard !listing.tiles.isEmpty else { throw ReelError(.badMedia, "the image track has no image") }
    return listing
  }

  // MARK: - Private

  /// Returns false if the listing has enough.
  private func list(
    _ part: Part, in listing: inout Listing, _ repeatCount: inout Int, until isEnough: (Tile) -> Bool
  ) throws(ReelError) -> Bool {
    let firstIndex = listing.tiles.count
    var longest = MediaTime.zero
    var (coveredEnd, lastLength) = (part.start, 0.0)
    for segment in part.list {
      if let end = part.end, segment.start >= end { continue }
      let tiles = segment.tiles ?? part.rung.tiles ?? ImageTiles()
      if let fault = tiles.fault { throw ReelError(.badManifest, fault) }
      try check(segment)
      // A single file may not say how long it is shown.
      let duration =
        segment.duration > .zero || part.list.count > 1
        ? segment.duration : part.end.map { $0 - segment.start } ?? .zero
      let segmentEnd = segment.start + duration
      coveredEnd = max(coveredEnd, segmentEnd)
      guard !segment.isGap else { continue }
      // The last segment may be shorter than the others, but its tiles are not.
      longest = max(longest, duration)
      let length = tiles.duration?.seconds ?? longest.seconds / Double(tiles.count)
      lastLength = length
      let end = part.end.map { min($0, segmentEnd) } ?? segmentEnd
      func time(_ index: Int) -> MediaTime {
        tiles.duration.map { segment.start + $0 * Int64(index) }
          ?? segment.start + MediaTime(seconds: length * Double(index), timescale: 1_000_000_000)
      }
      var count = 0
      for index in 0..<tiles.count {
        let start = time(index)
        let isFirst = index == 0 && (end == segmentEnd || listing.tiles.count == firstIndex)
        guard isFirst || (end - start).seconds > length * Self.leastShare else { break }
        count = index + 1
        let shown = max(start, part.start)
        if listing.tiles.last.map({ $0.time >= shown }) ?? false || length > 0 && time(count) <= part.start {
          repeatCount += 1
          guard repeatCount < Self.repeatLimit else { throw tooMany(segment) }
        } else {
          guard listing.tiles.count < Self.tileLimit else { throw tooMany(segment) }
          listing.tiles.append(Tile(time: shown, sheet: listing.sheets.count, index: index))
        }
        if length <= 0 { break }
      }
      guard let last = listing.tiles.last, last.sheet == listing.sheets.count else { continue }
      listing.sheets.append(Sheet(segment: segment, tiles: tiles, tileCount: count))
      if isEnough(last) { return false }
    }
    guard !isAlone, let end = part.end else { return true }
    guard listing.tiles.count > firstIndex else {
      throw ReelError(.badMedia, "the image track has no image from \(part.start) to \(end)")
    }
    guard (end - coveredEnd).seconds <= max(lastLength, (end - part.start).seconds / 10) else {
      throw ReelError(.badMedia, "the images end at \(coveredEnd), and the video ends at \(end)")
    }
    return true
  }

  /// Throws `unsupported` for an encryption that can't be undone.
  private func check(_ segment: SegmentReference) throws(ReelError) {
    guard let encryption = segment.encryption else { return }
    guard !encryption.encryptsSamples else {
      throw ReelError(
        .unsupported, "the images are encrypted (\(encryption.method))", at: segment.url.reelName)
    }
    try KeyStore.check(encryption, at: segment.url)
  }

  private func tooMany(_ segment: SegmentReference) -> ReelError {
    ReelError(.unsupported, "more than \(Self.tileLimit) tiles in the images", at: segment.url.reelName)
  }
}

// MARK: - Choice

/// What images are to the stills of a source.
enum ImageChoice: Sendable {
  /// Stills are taken from key frames.
  case none
  case track(ImageTrack)
  /// Images would be taken, but can't be read: key frames take their place.
  case failed(ReelError)
}

extension ImageTrack {
  /// Chooses the cheapest image track whose tiles need not be enlarged, in each period. Key frames are preferred if those of
  /// a rung that is large enough are cheaper, without a size, and for live presentations. Without video, any image track is
  /// chosen.
  ///
  /// Throws `ReelError` if the images of a source without video can't be read, or `CancellationError`.
  static func choice(_ opening: TrackOpening) async throws -> ImageChoice {
    guard case .presentation(let resolved) = opening.source, !opening.isIndexedFile else { return .none }
    let presentation = resolved.presentation
    let isAlone = !presentation.periods.contains(where: \.hasVideo)
    let periods = presentation.periods.filter { isAlone ? !$0.imageRungs.isEmpty : $0.hasVideo }
    guard !periods.isEmpty, periods.allSatisfy({ !$0.imageRungs.isEmpty }) else { return .none }
    if presentation.isLive {
      guard isAlone else { return .none }
      throw ReelError(.unsupported, "a live presentation that contains only images", at: opening.context.name)
    }
    var chosen: [(rung: Rung, period: Period, end: MediaTime?)] = []
    for (index, period) in periods.enumerated() {
      guard let rung = rung(in: period, of: presentation, opening, isAlone: isAlone) else { return .none }
      let next = periods.dropFirst(index + 1).first?.start
      let end = period.duration.map { period.start + $0 } ?? next ?? presentation.duration
      // A presentation without a duration may be given one of nothing.
      chosen.append((rung, period, end.flatMap { $0 > period.start ? $0 : nil }))
    }
    do {
      async let video: RungSegments? = isAlone ? nil : playlist(ofVideoIn: presentation, opening)
      var parts: [Part] = []
      for (rung, period, end) in chosen {
        let found = try await opening.resolver.segments(of: rung, variables: presentation.variables)
        if found.live != nil {
          guard isAlone else { return .none }
          throw ReelError(.unsupported, "a live playlist of images", at: opening.context.name)
        }
        guard !found.list.isEmpty else { continue }
        let known = try await video
        guard known?.live == nil else { return .none }
        parts.append(
          Part(rung: rung, list: found.list, start: period.start, end: end ?? known?.list.end))
      }
      guard !parts.isEmpty else { throw ReelError(.badMedia, "the image track has no image") }
      return .track(ImageTrack(parts: parts, isAlone: isAlone))
    } catch let error as ReelError where !isAlone && error.kind != .cancelled {
      return .failed(chosen[0].rung.replaced(after: error))
    }
  }

  // MARK: - Private

  /// The playlist that states how long HLS video is; nil if there is none, or it can't be read.
  private static func playlist(
    ofVideoIn presentation: Presentation, _ opening: TrackOpening
  ) async throws -> RungSegments? {
    guard presentation.format == .hls, presentation.duration == nil, let period = presentation.periods.first,
      let rung = presentation.keyFrameRung(in: period, opening.context)
    else { return nil }
    return try await Patience.wait(clock: opening.context.recorder.clock) {
      do {
        return try await opening.resolver.segments(of: rung, variables: presentation.variables)
      } catch let error as ReelError where error.kind != .cancelled {
        return nil
      }
    }
  }

  private static func rung(
    in period: Period, of presentation: Presentation, _ opening: TrackOpening, isAlone: Bool
  ) -> Rung? {
    let size = opening.context.configuration.stillSize
    let fitting = period.imageRungs.filter { rung in
      size.map { size in rung.tiles?.size.map(size.isReached) ?? false } ?? false
    }
    let usable = fitting.filter { $0.tiles?.fault == nil }
    let cheapest = (usable.isEmpty ? fitting : usable).min { $0.ladderBitsPerSecond < $1.ladderBitsPerSecond }
    guard !isAlone else {
      return cheapest ?? period.imageRungs.max { $0.tilePixelCount < $1.tilePixelCount }
    }
    guard let size, let cheapest else { return nil }
    let keyFrames = presentation.keyFrameRung(in: period, opening.context)
    if let keyFrames, keyFrames.size.map(size.isReached) ?? false, keyFrames.ladderBitsPerSecond > 0,
      keyFrames.ladderBitsPerSecond < cheapest.ladderBitsPerSecond
    {
      return nil
    }
    return cheapest
  }
}

extension Rung {
  fileprivate var tilePixelCount: Int {
    tiles.flatMap { $0.fault == nil ? $0.size : nil }.map { $0.width * $0.height } ?? 0
  }

  /// The kind of track that its key frames make.
  var stillTrack: StillTrack { holdsKeyFramesOnly ? .keyFrames : .video }

  /// Why key frames take the place of the images of this rung.
  func replaced(after error: ReelError) -> ReelError {
    var replaced = error
    replaced.reason = "the images of '\(id)' can't be used, so key frames are: \(error.reason)"
    return replaced
  }
}

extension Period {
  /// The rungs with images that can be decoded.
  fileprivate var imageRungs: [Rung] {
    trackGroups.filter { $0.kind == .image && $0.unplayableReason == nil }.flatMap(\.rungs).filter { rung in
      guard rung.tiles != nil, rung.protection == nil else { return false }
      if case .index = rung.media { return false }
      let formats = ["image/jpeg", "image/jpg", "image/pjpeg", "image/png", "image/webp"]
      return rung.mimeType.map(formats.contains) ?? true
    }
  }
}

extension Presentation {
  /// The rung that key frames for stills are taken from; nil if there is none that can be played.
  fileprivate func keyFrameRung(in period: Period, _ context: TrackContext) -> Rung? {
    let ladder =
      (try? RungMatcher.ladder(
        of: period, role: .main(wantsAudio: false), configuration: context.configuration)) ?? []
    let keys = context.configuration.keyProvider
    let rungs = (ladder + keyFrameRungs(in: period, besides: ladder)).filter { rung in
      rung.protection.map { $0.keyIDs.allSatisfy { keys?.holdsKey(for: $0) ?? false } && keys != nil } ?? true
    }
    return RungController(context.configuration, clock: context.recorder.clock)
      .choose(among: rungs, segmentDuration: nil)
  }

  /// The playlists of I-frames, and the rungs for trick mode, that may be read besides the rungs of a period.
  func keyFrameRungs(in period: Period, besides ladder: [Rung]) -> [Rung] {
    var rungs = iFrameRungs
    if !isLive {
      let known = Set(ladder.map(\.id))
      rungs += period.trackGroups.filter { $0.isTrickMode && $0.kind == .video }.flatMap(\.rungs).filter {
        $0.protection == nil && !known.contains($0.id)
      }.map { rung in
        var rung = rung
        rung.holdsKeyFramesOnly = true
        return rung
      }
    }
    return rungs.filter(RungSelector.isDecodable)
  }
}
