import Foundation
package import ReelCore

/// A multivariant playlist (RFC 8216 §4.3.4, which calls it a master playlist).
package struct MultivariantPlaylist: Sendable {
  /// EXT-X-INDEPENDENT-SEGMENTS (RFC 8216 §4.3.5.1).
  package internal(set) var hasIndependentSegments = false
  /// EXT-X-START (RFC 8216 §4.3.5.2).
  package internal(set) var startOffset: StartOffset?
  /// Each EXT-X-STREAM-INF, in order (RFC 8216 §4.3.4.2).
  package internal(set) var variants: [Variant] = []
  /// Each EXT-X-I-FRAME-STREAM-INF, in order (RFC 8216 §4.3.4.3).
  package internal(set) var iFrameVariants: [Variant] = []
  /// Each EXT-X-IMAGE-STREAM-INF, in order (Image Media Playlist 0.4).
  package internal(set) var imageVariants: [Variant] = []
  /// Each EXT-X-MEDIA, in order (RFC 8216 §4.3.4.1).
  package internal(set) var renditions: [Rendition] = []
  /// The variables of EXT-X-DEFINE (draft-pantos-hls-rfc8216bis §4.4.2.3), for media playlists to import.
  package internal(set) var variables: [String: String] = [:]
  /// Invalid text that was ignored.
  package internal(set) var warnings: [ReelError] = []
}

extension MultivariantPlaylist {
  /// EXT-X-STREAM-INF or EXT-X-I-FRAME-STREAM-INF (RFC 8216 §4.3.4.2, §4.3.4.3). Includes fields that are only
  /// compared, by `VariantLadder`, to find redundant variants.
  package struct Variant: Sendable, Hashable {
    /// The line after the tag, or URI.
    package var reference: String
    /// BANDWIDTH, in bits per second.
    package var bandwidth: Int?
    /// AVERAGE-BANDWIDTH, in bits per second.
    package var averageBandwidth: Int?
    /// CODECS.
    package var codecs: [String]
    /// SUPPLEMENTAL-CODECS.
    package var supplementalCodecs: [String]
    /// RESOLUTION.
    package var resolution: PixelSize?
    /// FRAME-RATE.
    package var frameRate: Rational?
    /// HDCP-LEVEL.
    package var hdcpLevel: String?
    /// VIDEO-RANGE.
    package var videoRange: String?
    /// ALLOWED-CPC: the classes of content protection that a device must have, by KEYFORMAT.
    package var allowedProtection: String?
    /// REQ-VIDEO-LAYOUT, as the playlist writes it.
    package var requiredVideoLayout: String?
    /// SCORE: the preference for the variant.
    package var score: Double?
    /// AUDIO: the GROUP-ID of its audio renditions.
    package var audioGroup: String?
    /// VIDEO: the GROUP-ID of its video renditions.
    package var videoGroup: String?
    /// SUBTITLES: the GROUP-ID of its subtitles.
    package var subtitlesGroup: String?
    /// CLOSED-CAPTIONS: the GROUP-ID of its closed captions, or `NONE`.
    package var closedCaptionsGroup: String?
    /// PATHWAY-ID.
    package var pathwayID: String?
    /// NAME.
    package var name: String?
    /// STABLE-VARIANT-ID.
    package var stableID: String?
    /// The line of the tag.
    package var line: Int

    init(_ reader: inout AttributeReader, reference: String, line: Int) {
      self.reference = reference
      self.line = line
      bandwidth = reader.integer("BANDWIDTH", in: 1...Int64.max)
      averageBandwidth = reader.integer("AVERAGE-BANDWIDTH", in: 1...Int64.max)
      codecs = reader.attributes.list("CODECS")
      supplementalCodecs = reader.attributes.list("SUPPLEMENTAL-CODECS")
      resolution = reader.value("RESOLUTION") { PixelSize(resolution: $0) }
      frameRate = reader.value("FRAME-RATE") { Rational(frameRate: $0) }
      hdcpLevel = reader["HDCP-LEVEL"]
      videoRange = reader["VIDEO-RANGE"]
      allowedProtection = reader["ALLOWED-CPC"]
      requiredVideoLayout = reader["REQ-VIDEO-LAYOUT"]
      score = reader.value("SCORE") { Double($0).flatMap { $0.isFinite && $0 >= 0 ? $0 : nil } }
      audioGroup = reader["AUDIO"]
      videoGroup = reader["VIDEO"]
      subtitlesGroup = reader["SUBTITLES"]
      closedCaptionsGroup = reader["CLOSED-CAPTIONS"]
      pathwayID = reader["PATHWAY-ID"]
      name = reader["NAME"]
      stableID = reader["STABLE-VARIANT-ID"]
    }

    /// True if CODECS names only audio, and no other attribute indicates video.
    var isAudioOnly: Bool {
      resolution == nil && frameRate == nil && !codecs.isEmpty
        && codecs.allSatisfy { CodecFamily($0) == .audio }
    }
  }
}

extension MultivariantPlaylist {
  /// EXT-X-MEDIA (RFC 8216 §4.3.4.1).
  package struct Rendition: Sendable {
    /// TYPE.
    package enum MediaType: String, Sendable {
      case audio = "AUDIO"
      case video = "VIDEO"
      case subtitles = "SUBTITLES"
      case closedCaptions = "CLOSED-CAPTIONS"
    }

    /// TYPE.
    package var type: MediaType
    /// GROUP-ID.
    package var groupID: String
    /// NAME.
    package var name: String?
    /// URI; nil if the rendition is part of the variant's own segments.
    package var reference: String?
    /// LANGUAGE.
    package var language: String?
    /// DEFAULT.
    package var isDefault: Bool
    /// AUTOSELECT, which DEFAULT implies.
    package var isAutoselected: Bool
    /// FORCED.
    package var isForced: Bool
    /// CHARACTERISTICS.
    package var characteristics: [String]
    /// CHANNELS.
    package var channels: String?
    /// STABLE-RENDITION-ID.
    package var stableID: String?
    /// The line of the tag.
    package var line: Int

    init(_ reader: inout AttributeReader, line: Int) throws(ReelError) {
      let attributes = reader.attributes
      let place = ReelError.Place.line(line)
      guard let type = attributes["TYPE"].flatMap({ MediaType(rawValue: $0.uppercased()) }) else {
        throw ReelError(
          .badManifest, "EXT-X-MEDIA of the TYPE '\((attributes["TYPE"] ?? "").excerpt)'", place: place)
      }
      guard let groupID = attributes["GROUP-ID"] else {
        throw ReelError(.badManifest, "EXT-X-MEDIA without GROUP-ID", place: place)
      }
      self.type = type
      self.groupID = groupID
      self.line = line
      name = attributes["NAME"]
      reference = attributes["URI"].flatMap { $0.isEmpty ? nil : $0 }
      language = attributes["LANGUAGE"]
      isDefault = attributes.flag("DEFAULT")
      isAutoselected = isDefault || attributes.flag("AUTOSELECT")
      isForced = attributes.flag("FORCED")
      characteristics = attributes.list("CHARACTERISTICS")
      channels = attributes["CHANNELS"]
      stableID = attributes["STABLE-RENDITION-ID"]
      for name in ["BIT-DEPTH", "SAMPLE-RATE"] { reader.checkInteger(name, in: 1...Int64.max) }
    }
  }
}

extension MultivariantPlaylist {
  /// Returns one period with the variants as one group, a group for each audio and subtitle rendition, and
  /// one for all image playlists.
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
      audio: renditions.filter { $0.type == .audio }, hasIndependentSegments: hasIndependentSegments)
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

  /// Returns the playlists of I-frames or of images. One with a URI that can't be resolved is left out.
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
  /// The kind of its track group; nil if the rendition is not played from a playlist of its own.
  fileprivate var kind: TrackGroup.Kind? {
    switch type {
    case .audio: .audio
    case .subtitles: .text
    case .video, .closedCaptions: nil
    }
  }

  fileprivate func trackGroup(kind: TrackGroup.Kind, url: URL) -> TrackGroup {
    var group = TrackGroup(
      id: groupID, kind: kind, language: language, label: name,
      roles: characteristics + (isForced ? ["forced"] : []), isDefault: isDefault,
      rungs: [
        Rung(id: stableID ?? name ?? groupID, bitsPerSecond: nil, channels: channels, media: .playlist(url))
      ])
    group.isAutoselected = isAutoselected
    return group
  }

  fileprivate var audioAttributes: AudioAttributes {
    AudioAttributes(
      language: language, roles: characteristics, isDefault: isDefault, isAutoselected: isAutoselected)
  }
}

/// Makes rungs from variants: one for each playlist, with its alternatives.
///
/// Redundant variants (RFC 8216 §6.2.4) differ only in their URI: the first becomes a rung, the others its
/// `alternateURLs`. The same applies to variants of pathways other than the first variant's with the same
/// STABLE-VARIANT-ID, or else the same attributes (draft-pantos-hls-rfc8216bis §7.1). The ids of their groups
/// may differ, because a pathway may have its own groups. Further variants of other pathways are left out.
struct VariantLadder: Sendable {
  /// Rungs with video, and those of unknown kind.
  private(set) var main: [Rung] = []
  private(set) var audioOnly: [Rung] = []
  /// The renditions of audio, by their group.
  private let audio: [String: [MultivariantPlaylist.Rendition]]
  private var pathway: String?
  /// The rung of a playlist.
  private var known: [URL: Place] = [:]
  private var alternates: Set<URL> = []
  private var alike: [MultivariantPlaylist.Variant: Place] = [:]
  private var likeAcrossPathways: [MultivariantPlaylist.Variant: Place] = [:]
  private var stable: [String: Place] = [:]

  private let hasIndependentSegments: Bool

  init(audio: [MultivariantPlaylist.Rendition], hasIndependentSegments: Bool) {
    self.audio = Dictionary(grouping: audio, by: \.groupID)
    self.hasIndependentSegments = hasIndependentSegments
  }

  /// Adds a variant. Those of the first one's pathway must come before those of others.
  mutating func add(_ variant: MultivariantPlaylist.Variant, id: String, url: URL) {
    let pathway = self.pathway ?? variant.pathway
    self.pathway = pathway
    if variant.pathway != pathway {
      let same = variant.stableID.flatMap { stable[$0] } ?? likeAcrossPathways[variant.withoutGroups]
      if let same { addAlternate(url, to: same) }
      return
    }
    let place: Place
    if let same = known[url], !differsInSize(variant, from: same) {
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
      known[url] = known[url] ?? place
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

  /// Returns true if a variant with the URL of another states another size: one of them has a wrong URL.
  private func differsInSize(_ variant: MultivariantPlaylist.Variant, from place: Place) -> Bool {
    guard !place.isAudioOnly, let size = variant.resolution, let known = main[place.index].size else {
      return false
    }
    return size != known
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
    let renditions = variant.audioGroup.flatMap { audio[$0] } ?? []
    let hasOwnPlaylists = renditions.contains { $0.reference != nil }
    var rung = Rung(
      id: id, bitsPerSecond: variant.bandwidth, averageBitsPerSecond: variant.averageBandwidth,
      codecs: variant.codecs, size: variant.resolution, frameRate: variant.frameRate,
      videoRange: variant.videoRange, audioGroup: hasOwnPlaylists ? variant.audioGroup : nil,
      hasIndependentSegments: hasIndependentSegments, media: .playlist(url))
    let muxed = renditions.filter { $0.reference == nil }.map(\.audioAttributes)
    let mayHaveAudio = variant.codecs.isEmpty || variant.codecs.contains { CodecFamily($0) == .audio }
    if !muxed.isEmpty || renditions.isEmpty && mayHaveAudio {
      rung.ownAudio = OwnAudio(muxed, isAlone: !hasOwnPlaylists)
    }
    return rung
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
