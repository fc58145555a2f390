import Foundation
import ReelCore

extension MultivariantPlaylist {
  /// One period with the variants as one group, and a group for each audio and subtitle rendition.
  ///
  /// Throws `badManifest` where there is nothing to choose.
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
    let audioGroups = Set(separate.filter { $0.kind == .audio }.compactMap(\.id))
    var (main, audioOnly): ([(variant: Variant, rung: Rung)], [Rung]) = ([], [])
    var known: [URL: Int] = [:]
    for (index, variant) in variants.enumerated() where variant.pathwayID == variants.first?.pathwayID {
      let url = try resolver.resolve(variant.reference, place: .line(variant.line))
      let rung = variant.rung(id: String(index), url: url, audioGroups: audioGroups)
      if variant.isAudioOnly {
        if separateURLs.insert(url).inserted { audioOnly.append(rung) }
      } else if let other = known[url] {
        // The same pictures with other sound: one rung, at the least that it asks of the network.
        if rung.bitsPerSecond ?? .max < main[other].rung.bitsPerSecond ?? .max {
          main[other] = (variant, rung)
        }
      } else {
        known[url] = main.count
        main.append((variant, rung))
      }
    }
    let groups = Self.groups(main: main.map(\.rung), audioOnly: audioOnly, separate: separate)
    guard !groups.isEmpty else {
      throw ReelError(.badManifest, "the playlist has no variant that can be chosen")
    }
    let period = Period(id: nil, start: .zero, duration: nil, trackGroups: groups)
    return Presentation(
      format: .hls, duration: nil, periods: [period], warnings: log.warnings, variables: variables,
      startOffset: start?.timeOffset)
  }

  // MARK: - Private

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

extension MultivariantPlaylist.Variant {
  fileprivate func rung(id: String, url: URL, audioGroups: Set<String>) -> Rung {
    Rung(
      id: id, bitsPerSecond: bandwidth, averageBitsPerSecond: averageBandwidth, codecs: codecs,
      size: resolution, frameRate: frameRate, videoRange: videoRange,
      audioGroup: audioGroup.flatMap { audioGroups.contains($0) ? $0 : nil }, media: .playlist(url))
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
