import Foundation
import ReelCore

/// Makes rungs from variants: one for each playlist, with its alternatives.
///
/// Redundant variants (RFC 8216 §6.2.4) differ only in their URI: the first becomes a rung, the others its
/// `alternateURLs`. The same applies to variants of pathways other than the first variant's with the same
/// STABLE-VARIANT-ID, or else the same attributes (draft-pantos-hls-rfc8216bis §7.1). The ids of their groups
/// may differ, because a pathway may have its own groups. Further variants of other pathways are left out.
struct VariantLadder: Sendable {
  /// Rungs with video, and those of unknown kind.
  private(set) var main: [Rung] = []
  /// Rungs with only audio.
  private(set) var audioOnly: [Rung] = []
  private let audioGroups: Set<String>
  private var pathway: String?
  /// The rung of a playlist.
  private var known: [URL: Place] = [:]
  private var alternates: Set<URL> = []
  private var alike: [MultivariantPlaylist.Variant: Place] = [:]
  private var likeAcrossPathways: [MultivariantPlaylist.Variant: Place] = [:]
  private var stable: [String: Place] = [:]

  private let hasIndependentSegments: Bool

  /// `audioGroups` are the audio groups with playlists of their own.
  init(audioGroups: Set<String>, hasIndependentSegments: Bool) {
    self.audioGroups = audioGroups
    self.hasIndependentSegments = hasIndependentSegments
  }

  /// Adds a variant; those of the first one's pathway come before those of others.
  mutating func add(_ variant: MultivariantPlaylist.Variant, id: String, url: URL) {
    let pathway = self.pathway ?? variant.pathway
    self.pathway = pathway
    if variant.pathway != pathway {
      let same = variant.stableID.flatMap { stable[$0] } ?? likeAcrossPathways[variant.withoutGroups]
      if let same { addAlternate(url, to: same) }
      return
    }
    let place: Place
    if let same = known[url] {
      place = same
      takeLower(variant, id: id, url: url, at: same)
    } else if let same = alike[variant.withoutAddress] {
      place = same
      addAlternate(url, to: same)
    } else {
      let rung = rung(of: variant, id: id, url: url)
      if variant.isAudioOnly {
        place = Place(isAudioOnly: true, index: audioOnly.count)
        audioOnly.append(rung)
      } else {
        place = Place(isAudioOnly: false, index: main.count)
        main.append(rung)
      }
      known[url] = place
    }
    alike[variant.withoutAddress] = alike[variant.withoutAddress] ?? place
    likeAcrossPathways[variant.withoutGroups] = likeAcrossPathways[variant.withoutGroups] ?? place
    if let id = variant.stableID { stable[id] = stable[id] ?? place }
  }

  // MARK: - Private

  private struct Place: Sendable {
    var isAudioOnly: Bool
    var index: Int
  }

  /// Combines variants with the same video and different audio into one rung with the lowest bit rate.
  private mutating func takeLower(
    _ variant: MultivariantPlaylist.Variant, id: String, url: URL, at place: Place
  ) {
    guard !place.isAudioOnly, !variant.isAudioOnly else { return }
    var rung = rung(of: variant, id: id, url: url)
    guard rung.bitsPerSecond ?? .max < main[place.index].bitsPerSecond ?? .max else { return }
    rung.alternateURLs = main[place.index].alternateURLs
    main[place.index] = rung
  }

  private mutating func addAlternate(_ url: URL, to place: Place) {
    guard known[url] == nil, alternates.insert(url).inserted else { return }
    if place.isAudioOnly {
      audioOnly[place.index].alternateURLs.append(url)
    } else {
      main[place.index].alternateURLs.append(url)
    }
  }

  private func rung(of variant: MultivariantPlaylist.Variant, id: String, url: URL) -> Rung {
    Rung(
      id: id, bitsPerSecond: variant.bandwidth, averageBitsPerSecond: variant.averageBandwidth,
      codecs: variant.codecs, size: variant.resolution, frameRate: variant.frameRate,
      videoRange: variant.videoRange,
      audioGroup: variant.audioGroup.flatMap { audioGroups.contains($0) ? $0 : nil },
      hasIndependentSegments: hasIndependentSegments, media: .playlist(url))
  }
}

extension MultivariantPlaylist.Variant {
  /// PATHWAY-ID; `.` if it has none (draft-pantos-hls-rfc8216bis §4.4.6.2).
  var pathway: String { pathwayID ?? "." }

  /// The properties shared with redundant variants.
  fileprivate var withoutAddress: Self {
    var copy = self
    copy.reference = ""
    copy.pathwayID = nil
    copy.line = 0
    return copy
  }

  /// The properties shared with its counterparts on other pathways.
  fileprivate var withoutGroups: Self {
    var copy = withoutAddress
    copy.stableID = nil
    copy.audioGroup = nil
    copy.videoGroup = nil
    copy.subtitlesGroup = nil
    copy.closedCaptionsGroup = nil
    return copy
  }
}
