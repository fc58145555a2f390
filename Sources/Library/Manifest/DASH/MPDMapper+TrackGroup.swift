import Foundation
import ReelCore

extension MPDMapper {
  /// The context of one adaptation set.
  struct SetContext {
    var period: PeriodContext
    var path: String
    var kind: TrackGroup.Kind
    var bases: BaseURLSet
    var segments: MPD.SegmentInformation
    var hasBaseURL: Bool
    var videoRange: String?
    var channels: String?
  }

  /// The group of an adaptation set; nil if it has no Representation that can be used.
  mutating func trackGroup(
    _ set: MPD.AdaptationSet, path: String, in period: PeriodContext
  ) throws(ReelError) -> TrackGroup? {
    if set.href == Self.nothing { return nil }
    try checkLink(set.href, of: "adaptation set", isEmpty: set.representations.isEmpty, path: path)
    let context = SetContext(
      period: period, path: path, kind: Self.kind(of: set),
      bases: try period.bases.applying(
        set.baseURLs, path: path, budget: &baseBudget, warnings: &warnings),
      segments: set.segments.inheriting(from: period.segments),
      hasBaseURL: period.hasBaseURL || !set.baseURLs.isEmpty, videoRange: Self.videoRange(set.common),
      channels: Self.channels(set.common))
    var (playable, unplayable): ([Rung], [(rung: Rung, reason: String)]) = ([], [])
    for (index, representation) in set.representations.enumerated() {
      let path = "\(path)/Representation[\(index + 1)]"
      do throws(ReelError) {
        let rung = try rung(representation, index: index, path: path, set: set, in: context)
        if let reason = unplayableReason(representation, in: period) {
          unplayable.append((rung, reason))
        } else {
          playable.append(rung)
        }
      } catch {
        note(error)
        if context.kind == .video, videoFailure == nil { videoFailure = error }
      }
    }
    var reason = period.unplayableReason ?? unplayableReason(set, in: period)
    if playable.isEmpty, let first = unplayable.first {
      playable = unplayable.map(\.rung)
      reason = reason ?? first.reason
    } else {
      for (rung, reason) in unplayable {
        warnings.add(
          "the Representation '\(rung.id.excerpt)' is ignored: \(reason)", place: .element(path))
      }
    }
    guard !playable.isEmpty else { return nil }
    let roles = set.roles.compactMap(\.value)
    var group = TrackGroup(
      id: set.id, kind: context.kind, language: set.language, label: set.label, roles: roles,
      isDefault: roles.contains("main"), rungs: playable, unplayableReason: reason)
    group.isTrickMode = period.unplayableReason == nil && isTrickMode(set, in: period)
    return group
  }

  // MARK: - Private

  private mutating func rung(
    _ representation: MPD.Representation, index: Int, path: String, set: MPD.AdaptationSet,
    in context: SetContext
  ) throws(ReelError) -> Rung {
    let common = representation.common.inheriting(from: set.common)
    let located = try media(representation, mimeType: common.mimeType, path: path, in: context)
    var rung = Rung(
      id: representation.id ?? String(index),
      bitsPerSecond: representation.bandwidth.flatMap { Int(exactly: $0) },
      codecs: common.codecs, size: PixelSize(width: common.width, height: common.height),
      frameRate: common.frameRate, sampleAspectRatio: common.sampleAspectRatio,
      videoRange: Self.videoRange(representation.common) ?? context.videoRange,
      channels: Self.channels(representation.common) ?? context.channels, mimeType: common.mimeType,
      availabilityTimeOffset: located.availabilityTimeOffset,
      hasIndependentSegments: hasIndependentSegments(common),
      protection: ContentProtection(resolved(common.contentProtections, in: context.period)),
      media: located.media)
    if context.kind == .image { rung.tiles = tiles(representation, size: rung.size, set: set, in: context) }
    return rung
  }

  /// The tiles of a Representation of images (DASH-IF IOP 4.3 §6.2.6): @width and @height are those of a whole segment, and
  /// each tile lasts an equal part of a whole segment's duration. Nil for timed metadata.
  private mutating func tiles(
    _ representation: MPD.Representation, size: PixelSize?, set: MPD.AdaptationSet, in context: SetContext
  ) -> ImageTiles? {
    let own = representation.common
    let property = [own, set.common].lazy.flatMap { $0.essentialProperties + $0.supplementalProperties }
      .first(where: Playability.isThumbnailTile)
    let mimeType = own.mimeType ?? set.common.mimeType ?? ""
    guard property != nil || mimeType.hasPrefix("image/") || set.contentType == "image" else { return nil }
    var tiles = property.map { ImageTiles(layout: $0.value) } ?? ImageTiles()
    if let fault = tiles.fault {
      warnings.add(fault, place: .element(context.path))
      tiles.size = size
      return tiles
    }
    if let size, size.width >= tiles.columns, size.height >= tiles.rows {
      tiles.size = PixelSize(width: size.width / tiles.columns, height: size.height / tiles.rows)
    }
    let information = representation.segments.inheriting(from: context.segments)
    if let common = information.template?.common ?? information.list?.common, common.timeline == nil,
      let ticks = common.duration, ticks > 0
    {
      let (scale, overflow) = (common.base.timescale ?? 1).multipliedReportingOverflow(by: Int64(tiles.count))
      if !overflow { tiles.duration = MediaTime(ticks: ticks, timescale: scale) }
    }
    return tiles
  }

  /// True if segments begin with a frame that can be decoded on its own: a SAP of type 1 or 2 (ISO/IEC 23009-1
  /// §5.3.7.2), or a profile that requires it (§8.3, §8.4).
  private func hasIndependentSegments(_ common: MPD.CommonAttributes) -> Bool {
    if let type = common.startWithSAP { return type == "1" || type == "2" }
    return mpd.profiles.contains { profile in
      ["isoff-live:2011", "isoff-on-demand:2011"].contains { profile.hasSuffix($0) }
    }
  }

  /// By what it says of itself, by what its first Representation says, by its codecs.
  private static func kind(of set: MPD.AdaptationSet) -> TrackGroup.Kind {
    let first = set.representations.first?.common ?? set.common
    if (set.common.essentialProperties + set.common.supplementalProperties + first.essentialProperties)
      .contains(where: Playability.isThumbnailTile)
      || first.supplementalProperties.contains(where: Playability.isThumbnailTile)
    {
      return .image
    }
    let mimeType = set.common.mimeType ?? first.mimeType ?? ""
    let declared = [set.contentType ?? "", mimeType].map {
      $0.split(separator: "/").first.map(String.init) ?? ""
    }
    for type in declared {
      switch type {
      case "video": return .video
      case "audio": return .audio
      case "text": return .text
      case "image": return .image
      default: break
      }
    }
    let codecs = first.codecs.isEmpty ? set.common.codecs : first.codecs
    let families = codecs.map { CodecFamily($0) }
    if families.contains(.video) { return .video }
    if families.contains(.audio) { return .audio }
    if families.contains(.text) { return .text }
    if mimeType == "application/ttml+xml" || mimeType == "application/x-rawcc" { return .text }
    // Timed metadata: an application's codec that is not media.
    return mimeType.hasPrefix("application/") && !codecs.isEmpty ? .image : .video
  }

  private func unplayableReason(_ set: MPD.AdaptationSet, in period: PeriodContext) -> String? {
    if set.common.supplementalProperties.contains(where: Playability.isTrickMode) { return "trick mode" }
    return Playability.reason(essential: set.common.essentialProperties)
      ?? Playability.reason(protections: resolved(set.common.contentProtections, in: period))
  }

  /// True if nothing but trick mode keeps a set from being played.
  private func isTrickMode(_ set: MPD.AdaptationSet, in period: PeriodContext) -> Bool {
    let essential = set.common.essentialProperties
    return (essential + set.common.supplementalProperties).contains(where: Playability.isTrickMode)
      && Playability.reason(essential: essential.filter { !Playability.isTrickMode($0) }) == nil
      && Playability.reason(protections: resolved(set.common.contentProtections, in: period)) == nil
  }

  private func unplayableReason(
    _ representation: MPD.Representation, in period: PeriodContext
  ) -> String? {
    if let dependency = representation.dependencyID, !dependency.isEmpty {
      return "it adds to another representation (\(dependency.excerpt)) and can't be decoded by itself"
    }
    if representation.common.supplementalProperties.contains(where: Playability.isTrickMode) {
      return "trick mode"
    }
    return Playability.reason(essential: representation.common.essentialProperties)
      ?? Playability.reason(protections: resolved(representation.common.contentProtections, in: period))
  }

  /// Protections, those that refer to one of the period or of the MPD replaced by it (ISO/IEC 23009-1 §5.8.4.1).
  private func resolved(_ protections: [MPD.Descriptor], in period: PeriodContext) -> [MPD.Descriptor] {
    protections.map { protection in
      guard let reference = protection.reference else { return protection }
      let ofPeriod = mpd.periods[period.index].contentProtections.prefix(64)
      return ofPeriod.first { $0.referenceID == reference } ?? contentProtections[reference] ?? protection
    }
  }

  /// The video range of the transfer characteristics (ISO/IEC 23091-2 §8.2).
  private static func videoRange(_ common: MPD.CommonAttributes) -> String? {
    for property in common.essentialProperties + common.supplementalProperties
    where property.scheme.lowercased() == "urn:mpeg:mpegb:cicp:transfercharacteristics" {
      switch property.value?.integer {
      case 16: return "PQ"
      case 18: return "HLG"
      case 1, 6, 13, 14, 15: return "SDR"
      default: break
      }
    }
    return nil
  }

  /// How many channels there are, by the first configuration whose scheme is known.
  private static func channels(_ common: MPD.CommonAttributes) -> String? {
    for configuration in common.audioChannelConfigurations {
      if let count = ChannelConfiguration.channelCount(configuration) { return String(count) }
    }
    return nil
  }
}
