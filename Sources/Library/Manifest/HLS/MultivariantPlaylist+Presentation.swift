import Foundation
import ReelCore

extension MultivariantPlaylist {
  /// One period with the variants as one group, a group for each audio and subtitle rendition, and one for all image
  /// playlists.
  ///
  /// Throws `badManifest` if there is nothing to choose.
  func presentation(url: URL, limits: ManifestLimits) throws(ReelError) -> Presentation {
    var log = WarningLog(limit: limits.warnings)
    for warning in warnings { log.add(warning) }
    let resolver = URLResolver(base: url, limit: limits.urlByteCount)
    var separate: [TrackGroup] = []
    var separateURLs: Set<URL> = []
    for rendition in renditions {
      guard let kind = rendition.kind, let reference = rendition.reference else { continue }
      let url = try resolver.resolve(reference, place: .line(rendition.line))
      separateURLs.insert(url)
      separate.append(rendition.trackGroup(kind: kind, url: url))
    }
    var ladder = VariantLadder(
      audioGroups: Set(separate.filter { $0.kind == .audio }.compactMap(\.id)),
      hasIndependentSegments: hasIndependentSegments)
    let numbered = Array(variants.enumerated())
    let pathway = variants.first?.pathway
    // Variants of other pathways are matched with those of the first.
    for (index, variant) in numbered.filter({ $1.pathway == pathway })
      + numbered.filter({ $1.pathway != pathway })
    {
      let url = try resolver.resolve(variant.reference, place: .line(variant.line))
      if variant.isAudioOnly, separateURLs.contains(url) { continue }
      ladder.add(variant, id: String(index), url: url)
    }
    var groups = Self.groups(main: ladder.main, audioOnly: ladder.audioOnly, separate: separate)
    let images = rungs(of: imageVariants, named: "images", resolver) { variant, rung in
      rung.tiles = ImageTiles(size: variant.resolution)
    }
    if !images.isEmpty {
      groups.append(
        TrackGroup(
          id: nil, kind: .image, language: nil, label: nil, roles: [], isDefault: false, rungs: images))
    }
    guard !groups.isEmpty else {
      throw ReelError(.badManifest, "the playlist has no variant that can be chosen")
    }
    let period = Period(id: nil, start: .zero, duration: nil, trackGroups: groups)
    var presentation = Presentation(
      format: .hls, duration: nil, periods: [period], warnings: log.warnings, variables: variables,
      startOffset: startOffset)
    presentation.iFrameRungs = rungs(of: iFrameVariants, named: "i-frames", resolver) { variant, rung in
      rung.videoRange = variant.videoRange
      rung.hasIndependentSegments = true
      rung.holdsKeyFramesOnly = true
    }
    return presentation
  }

  // MARK: - Private

  /// The playlists of I-frames or of images. One with a URI that can't be resolved is left out.
  private func rungs(
    of variants: [Variant], named name: String, _ resolver: URLResolver,
    complete: (Variant, inout Rung) -> Void
  ) -> [Rung] {
    variants.enumerated().compactMap { index, variant in
      guard let url = try? resolver.resolve(variant.reference, place: .line(variant.line)) else { return nil }
      var rung = Rung(
        id: "\(name)-\(index)", bitsPerSecond: variant.bandwidth,
        averageBitsPerSecond: variant.averageBandwidth, codecs: variant.codecs, size: variant.resolution,
        media: .playlist(url))
      complete(variant, &rung)
      return rung
    }
  }

  private static func groups(main: [Rung], audioOnly: [Rung], separate: [TrackGroup]) -> [TrackGroup] {
    var groups: [TrackGroup] = []
    if !main.isEmpty {
      groups.append(
        TrackGroup(
          id: nil, kind: .video, language: nil, label: nil, roles: [], isDefault: true, rungs: main))
    }
    if !audioOnly.isEmpty {
      groups.append(
        TrackGroup(
          id: nil, kind: .audio, language: nil, label: nil, roles: [], isDefault: main.isEmpty,
          rungs: audioOnly))
    }
    return groups + separate
  }
}

extension MultivariantPlaylist.Rendition {
  /// The kind of its track group; nil for what is not played from a playlist of its own.
  fileprivate var kind: TrackGroup.Kind? {
    switch type {
    case .audio: .audio
    case .subtitles: .text
    case .video, .closedCaptions: nil
    }
  }

  fileprivate func trackGroup(kind: TrackGroup.Kind, url: URL) -> TrackGroup {
    TrackGroup(
      id: groupID, kind: kind, language: language, label: name,
      roles: characteristics + (isForced ? ["forced"] : []), isDefault: isDefault,
      rungs: [
        Rung(id: stableID ?? name ?? groupID, bitsPerSecond: nil, channels: channels, media: .playlist(url))
      ])
  }
}
