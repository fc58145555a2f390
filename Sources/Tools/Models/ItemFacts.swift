package import ReelCore
package import ReelSimulation

/// What a modelled player needs to know of an item: the sizes of what it requests, and the times of its segments.
package struct ItemFacts: Sendable, Hashable {
  /// One quality of a track. Nil for what it does not have.
  package struct Rung: Sendable, Hashable {
    /// Its id in the manifest.
    package var id: String?
    /// As the manifest states it.
    package var bitsPerSecond: Int?
    package var playlist: LinkPlayback.Request?
    package var index: LinkPlayback.Request?
    package var initialization: LinkPlayback.Request?
    package var segments: [LinkPlayback.Segment]

    package init(_ segments: [LinkPlayback.Segment]) { self.segments = segments }

    /// The stated bit rate, or else that of its segments.
    var rate: Double {
      if let bitsPerSecond { return Double(bitsPerSecond) }
      let seconds = segments.reduce(0) { $0 + $1.pieces.reduce(0) { $0 + $1.duration } }
      return Double(segments.reduce(0) { $0 + $1.byteCount }) * 8 / max(seconds, 0.001)
    }
  }

  package var format: PlayerModel.Format
  /// The document at the item's URL; nil for a file.
  package var manifest: LinkPlayback.Request?
  /// The rungs of video, as they are listed. A file has one.
  package var video: [Rung]
  /// Audio with segments of its own.
  package var audio: Rung?
  /// The bytes of the first segment of video up to the end of the first frame; nil if they are not known.
  package var firstFrameByteCount: Int64?
  /// The same up to the end of the first audio, if it is in the segments of video.
  package var firstSoundByteCount: Int64?
  /// The index of the rung whose first frame and audio these are.
  package var firstFrameRung = 0
  /// The time between frames, in seconds.
  package var frameDuration = 1.0 / 30
  /// The time by which the first frame is shown after it could be decoded, as frames are reordered, in seconds.
  package var reorderDelay = 0.0
  package var codec: VideoCodec?
  package var pixelCount = 0

  package init(_ format: PlayerModel.Format, manifest: LinkPlayback.Request?, video: [Rung]) {
    (self.format, self.manifest, self.video) = (format, manifest, video)
  }

  package var container: PlayerModel.Container {
    if format == .file { return .file }
    return video.contains { $0.initialization != nil } ? .fmp4 : .ts
  }

  /// The bytes of a rung's first segment up to the end of the first frame, and of the first audio if that is needed too:
  /// of a rung that was not read, by its size.
  func firstFrameByteCount(of rung: Int, needsAudio: Bool) -> Int64 {
    let needed = firstFrameByteCount.map { max($0, needsAudio ? firstSoundByteCount ?? 0 : 0) }
    let sizes = [rung, firstFrameRung].map { index in
      video.indices.contains(index) ? video[index].segments.first?.byteCount ?? 1 : 1
    }
    guard let needed, sizes[1] > 0 else { return sizes[0] }
    if rung == firstFrameRung { return needed }
    return Int64((Double(needed) * Double(sizes[0]) / Double(sizes[1])).rounded())
  }
}

extension PlayerModel {
  /// The time by which the second frame of an item is later, as the clock begins at the decode time of the first one.
  func reorderDelay(of facts: ItemFacts) -> Duration {
    start.decodeTime.contains(facts.container) ? .milliseconds(facts.reorderDelay * 1000) : .zero
  }

  /// What a player of this model loads of an item.
  ///
  /// - Parameters:
  ///   - measuredRate: The rate of the link as other players have measured it; nil if they have not.
  ///   - rung: The index of the rung to begin with; nil for the one that the model chooses.
  package func item(_ facts: ItemFacts, measuredRate: Double? = nil, from rung: Int? = nil)
    -> SegmentPlayer.Item
  {
    let first = rung ?? firstRung(of: facts, measuredRate: measuredRate)
    let rung = facts.video.indices.contains(first) ? facts.video[first] : ItemFacts.Rung([])
    func request(_ resource: Resource) -> LinkPlayback.Request? {
      switch resource {
      case .manifest: facts.manifest
      case .playlist: rung.playlist
      case .audioPlaylist: facts.audio?.playlist
      case .index: rung.index
      case .audioIndex: facts.audio?.index
      default: nil
      }
    }
    var opening = start.requests.map { $0.compactMap(request) }.filter { !$0.isEmpty }
    if start.opens == .all {
      let others = facts.video.indices.filter { $0 != first }
      opening += others.compactMap { facts.video[$0].playlist }.map { [$0] }
      opening += others.flatMap { probe(of: facts, rung: $0) }
    }
    var item = SegmentPlayer.Item(
      opening: opening,
      tracks: [facts.video.map(Self.track)] + (facts.audio.map { [[Self.track($0)]] } ?? []))
    item.firstRung = first
    item.firstFrameByteCount = facts.firstFrameByteCount(of: first, needsAudio: start.firstFrame.audio)
    return item
  }

  /// The requests of a rung that is opened and not played: as much of its first segments as a first frame needs.
  private func probe(of facts: ItemFacts, rung index: Int) -> [[LinkPlayback.Request]] {
    let rung = facts.video[index]
    let needed = Double(facts.firstFrameByteCount(of: index, needsAudio: start.firstFrame.audio))
    let media = rung.segments.prefix(start.segmentsAtOnce).map { segment in
      let seconds = segment.pieces.reduce(0) { $0 + $1.duration }
      let ahead = Double(segment.byteCount) * start.firstFrame.aheadMs / 1000 / max(seconds, 0.001)
      let isWhole = start.firstFrame.needs == .segment
      let byteCount = isWhole ? segment.byteCount : min(segment.byteCount, Int64(max(needed, ahead)))
      return LinkPlayback.Request(
        segment.url, byteCount: byteCount, wait: segment.wait, purpose: .segment)
    }
    return [[rung.initialization].compactMap(\.self), media].filter { !$0.isEmpty }
  }

  private static func track(_ rung: ItemFacts.Rung) -> SegmentPlayer.Rung {
    var segments = rung.segments
    if !segments.isEmpty { segments[0].initialization = rung.initialization }
    return SegmentPlayer.Rung(
      bitsPerSecond: rung.rate,
      preamble: [rung.playlist, rung.index, rung.initialization].compactMap(\.self), segments: segments)
  }

  private func firstRung(of facts: ItemFacts, measuredRate: Double?) -> Int {
    let ordered = facts.video.indices.sorted {
      (facts.video[$0].rate, $0) < (facts.video[$1].rate, $1)
    }
    switch start.rung {
    case .first: return 0
    case .lowest: return ordered.first ?? 0
    case .highest: return ordered.last ?? 0
    case .estimate:
      return rules.adaptation?.rung(of: facts.video.map(\.rate), measuredRate: measuredRate) ?? 0
    }
  }
}
