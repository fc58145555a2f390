import Foundation
import ReelCore

/// Makes a `Presentation` from an MPD: periods with their times, inheritance, URLs and, for a live one, the
/// part that is available at a given time.
///
/// Unusable parts of an MPD are skipped with a warning, as long as anything usable is left.
struct MPDMapper {
  let mpd: MPD
  let limits: ManifestLimits
  /// The available part of a live presentation; nil for a static MPD, and for one that is not tied to the
  /// clock.
  private(set) var window: LiveWindow?
  var warnings: WarningLog
  /// The first reason why something could not be used. It is thrown if nothing can be used.
  var failure: ReelError?
  /// The timelines that were compiled for this period, since Representations share them.
  var timings: [TimingKey: SegmentTiming] = [:]
  /// The number of entries of the compiled timelines, in all periods.
  var compiledEntries = 0
  /// The limits for base URLs still to be made.
  var baseBudget = BaseURLSet.Budget()
  /// The addresses of lists of URLs that were checked.
  var checkedLists: Set<Int> = []
  /// The duration of the longest segment so far.
  var longestSegment = MediaTime.zero
  /// The end of the last available segment, in the window or before it.
  var latestEnd: MediaTime?
  /// The end of the last listed segment, whether or not the clock says that it is available.
  var listedEnd: MediaTime?
  /// True if a segment is in the window.
  var hasSegments = false
  /// The reason why none of this period's video can be used; nil if some can, or there is none.
  var videoFailure: ReelError?
  /// The time added to a clock according to which all listed segments are in the future; nil if none was
  /// added.
  private var drift: MediaTime?

  /// ContentProtection elements of the MPD that others refer to, by their @refId.
  let contentProtections: [String: MPD.Protection]

  private let url: URL
  private let now: WallTime
  /// The reason why nothing of the MPD can be played.
  private let unplayableReason: String?

  init(_ mpd: MPD, url: URL, limits: ManifestLimits, now: WallTime) {
    self.mpd = mpd
    self.url = url
    self.now = now
    self.limits = limits
    window = LiveWindow(mpd, now: now)
    contentProtections = Dictionary(
      mpd.contentProtections.compactMap { protection in protection.referenceID.map { ($0, protection) } },
      uniquingKeysWith: { first, _ in first })
    unplayableReason = mpd.essentialProperties.unplayableReason
    warnings = WarningLog(limit: limits.warnings)
    for warning in mpd.warnings { warnings.add(warning) }
  }

  /// The inputs of a compiled timeline.
  struct TimingKey: Hashable {
    var entries: Int
    var frame: SegmentTiming.Frame
  }

  struct PeriodContext {
    var index: Int
    var path: String
    var start: MediaTime
    var duration: MediaTime?
    var bases: BaseURLSet
    var segments: MPD.SegmentInformation
    /// True if a BaseURL leads to a file of its own.
    var hasBaseURL: Bool
    var unplayableReason: String?
  }

  /// Returns the presentation. Throws `badManifest` or `unsupported` if nothing in it can be used.
  func presentation() throws(ReelError) -> Presentation {
    var mapper = self
    let presentation = try mapper.mapped()
    guard !mapper.hasSegments, let window else { return presentation }
    if let end = mapper.latestEnd {
      guard window.depth != nil else { return presentation }
      // The MPD is older than its time-shift buffer, so only the segments listed last are available.
      mapper = self
      mapper.window = window.ending(at: end)
      return try mapper.mapped()
    }
    guard let end = mapper.listedEnd, !window.isAnnouncement(endingAt: end) else { return presentation }
    // A server lists segments that exist. If all of them are in the future, the clock is wrong or does not fit the
    // timeline.
    let drift = (end - window.now).roundedUpToMilliseconds
    mapper = MPDMapper(mpd, url: url, limits: limits, now: now + drift)
    mapper.drift = drift
    mapper.warnings.add(LiveTiming.driftFault(drift))
    return try mapper.mapped()
  }

  // MARK: - For its extensions

  /// The xlink:href of an element to be left out (ISO/IEC 23009-1 §5.5.2).
  static let nothing = "urn:mpeg:dash:resolve-to-zero:2013"

  /// Adds a warning for something that is skipped.
  mutating func record(_ error: ReelError) {
    if failure == nil { failure = error }
    // An unreadable value has already caused a warning, and may rule out several Representations.
    if !warnings.warnings.contains(error) { warnings.add(error) }
  }

  /// Checks an xlink:href, which refers to an element's real content (ISO/IEC 23009-1 §5.5.2). The element's
  /// own content, if any, is used: it is meant for clients that can't follow the link.
  ///
  /// Throws `unsupported` if there is none.
  mutating func checkLink(_ href: String?, of what: String, isEmpty: Bool, path: String) throws(ReelError) {
    guard let href else { return }
    let error = ReelError(
      .unsupported, found: .reference,
      "the \(what) is in another file (xlink:href '\(href.excerpt)'), which is not supported",
      place: .element(path))
    if isEmpty { throw error }
    warnings.add(error)
  }

  /// Returns an error about something that can't be computed, with the malformed duration that may be the
  /// cause.
  func explained(_ error: ReelError) -> ReelError {
    guard error.reason.hasPrefix("no computable"), let cause = mpd.malformedLength else {
      return error
    }
    var explained = error
    explained.reason += "; \(cause.reason)"
    explained.place = cause.place ?? error.place
    return explained
  }

  // MARK: - Private

  private mutating func mapped() throws(ReelError) -> Presentation {
    guard !mpd.periods.isEmpty else {
      throw ReelError(.badManifest, "the MPD has no Period", place: .element("MPD"))
    }
    checkDates()
    let bases = try BaseURLSet(url, limit: limits.urlByteCount)
      .applying(mpd.baseURLs, path: "MPD", budget: &baseBudget, warnings: &warnings)
    var (periods, isAnnounced): ([Period], Bool) = ([], false)
    var previousEnd: MediaTime? = .zero
    for index in mpd.periods.indices {
      if mpd.periods[index].href == Self.nothing { continue }
      timings.removeAll(keepingCapacity: true)
      do throws(ReelError) {
        guard let context = try context(index, previousEnd: previousEnd, bases) else {
          isAnnounced = isAnnounced || mpd.type == .dynamic && previousEnd == nil
          continue
        }
        let period = try period(context)
        previousEnd = end(of: period)
        if !period.trackGroups.isEmpty { periods.append(period) }
      } catch {
        record(error)
        let period = mpd.periods[index]
        let start = period.start ?? previousEnd
        // A period that is in another file, and does not say how long it is, has no length without that.
        let length = period.duration ?? (period.href == nil ? nil : .zero)
        previousEnd = length.flatMap { length in start.map { $0 + length } }
      }
    }
    // The periods of a live presentation may only have been announced so far.
    if periods.isEmpty, failure != nil || !isAnnounced {
      throw failure
        ?? ReelError(.badManifest, "the MPD has no selectable Representation", place: .element("MPD"))
    }
    let live = liveTiming()
    var presentation = Presentation(
      format: .dash, live: live, duration: duration(of: periods), periods: periods,
      warnings: warnings.warnings)
    presentation.minBufferTime = mpd.minBufferTime
    return presentation
  }

  /// Returns the start and end of a period (ISO/IEC 23009-1 §5.3.2.1), and the values that it inherits; nil
  /// if it is left out.
  private mutating func context(
    _ index: Int, previousEnd: MediaTime?, _ bases: BaseURLSet
  ) throws(ReelError) -> PeriodContext? {
    let period = mpd.periods[index]
    let path = "MPD/Period[\(index + 1)]"
    guard let start = period.start ?? previousEnd else {
      if mpd.type == .dynamic {
        warnings.add("the period is announced, its start not known yet", place: .element(path))
        return nil
      }
      throw explained(
        ReelError(
          .badManifest, "the period's start can't be computed: it has none, and the one before it no end",
          place: .element(path)))
    }
    let following = mpd.periods[(index + 1)...].first { $0.href != Self.nothing }
    var duration = period.duration
    if let next = following?.start ?? startCountedFromEnd(ofPeriodAfter: index) {
      let available = next - start
      duration = min(duration ?? available, available)
    } else if duration == nil, following == nil {
      duration = mpd.mediaPresentationDuration.map { $0 - start }
    }
    if let length = duration, length <= .zero {
      guard following == nil else {
        try checkLink(period.href, of: "period", isEmpty: period.adaptationSets.isEmpty, path: path)
        warnings.add("the period's duration is not above 0: ignored", place: .element(path))
        return nil
      }
      warnings.add("the period's duration is not above 0: treated as unknown", place: .element(path))
      duration = nil
    }
    return PeriodContext(
      index: index, path: path, start: start, duration: duration,
      bases: try bases.applying(period.baseURLs, path: path, budget: &baseBudget, warnings: &warnings),
      segments: period.segments,
      hasBaseURL: !mpd.baseURLs.isEmpty || !period.baseURLs.isEmpty,
      unplayableReason: unplayableReason ?? period.essentialProperties.unplayableReason)
  }

  /// Returns the start of the next period, if it states no readable start, computed back from the durations
  /// of the later periods.
  private func startCountedFromEnd(ofPeriodAfter index: Int) -> MediaTime? {
    guard mpd.periods[index].duration == nil, var start = mpd.mediaPresentationDuration else { return nil }
    let following = mpd.periods[(index + 1)...].filter { $0.href != Self.nothing }
    for period in following {
      guard let duration = period.duration else { return nil }
      start = start - duration
    }
    return following.isEmpty || start <= .zero ? nil : start
  }

  private mutating func period(_ context: PeriodContext) throws(ReelError) -> Period {
    let period = mpd.periods[context.index]
    videoFailure = nil
    try checkLink(period.href, of: "period", isEmpty: period.adaptationSets.isEmpty, path: context.path)
    var groups: [TrackGroup] = []
    for (index, set) in period.adaptationSets.enumerated() {
      let path = "\(context.path)/AdaptationSet[\(index + 1)]"
      do throws(ReelError) {
        if let group = try trackGroup(set, path: path, in: context) { groups.append(group) }
      } catch {
        record(error)
      }
    }
    return Period(
      id: period.id, start: context.start, duration: context.duration, trackGroups: groups,
      videoFailure: videoFailure)
  }

  /// Returns the end of a period; nil if unknown. The segments of a live one do not determine it, because
  /// more may follow.
  private func end(of period: Period) -> MediaTime? {
    let length = period.duration ?? (mpd.type == .dynamic ? nil : period.segmentsDuration)
    return length.map { period.start + $0 }
  }

  private mutating func checkDates() {
    guard mpd.type == .dynamic else { return }
    let dates = [
      ("availabilityStartTime", mpd.availabilityStartTime), ("availabilityEndTime", mpd.availabilityEndTime),
      ("publishTime", mpd.publishTime),
    ]
    for case (let name, let text?) in dates where WallTime(iso8601: text) == nil {
      warnings.add("@\(name) '\(text.excerpt)' is not a date: ignored", place: .element("MPD"))
    }
  }

  private mutating func liveTiming() -> LiveTiming? {
    guard mpd.type == .dynamic else { return nil }
    let resolver = URLResolver(base: url, limit: limits.urlByteCount)
    let start = mpd.availabilityStartTime.flatMap { WallTime(iso8601: $0) }
    // Exclude the end of the last period, because another period may be announced.
    let ends = [
      mpd.availabilityEndTime.flatMap { WallTime(iso8601: $0) },
      start.flatMap { start in mpd.mediaPresentationDuration.map { start + $0 } },
    ]
    var timing = LiveTiming(
      reload: mpd.minimumUpdatePeriod.map { .after($0) } ?? .never, delay: delay,
      timeShiftBufferDepth: mpd.timeShiftBufferDepth, availabilityStart: start,
      availabilityEnd: ends.compactMap { $0 }.min())
    timing.drift = drift
    timing.maxSegmentDuration = mpd.maxSegmentDuration
    for location in mpd.locations.prefix(BaseURLSet.limit) where !location.isEmpty {
      do throws(ReelError) {
        timing.locations.append(try resolver.resolve(location, place: .element("MPD/Location")))
      } catch {
        warnings.add(error)
      }
    }
    timing.clockSources = ClockSource.sources(mpd.utcTimings, resolver, warnings: &warnings)
    if window != nil {
      timing.presentation = { [mpd, url, limits] (now: WallTime) throws(ReelError) -> Presentation in
        do throws(ReelError) {
          return try MPDMapper(mpd, url: url, limits: limits, now: now).presentation()
        } catch {
          throw error.located(at: url.manifestLocation)
        }
      }
    }
    return timing
  }

  /// The distance from the edge at which playback begins: the MPD's suggestion, or else the service's target
  /// latency, or else the larger of three segments (so that one can be late while one is read and one is
  /// played) and one and a half times @minBufferTime. The latter counts for at most 10 s, because writers state
  /// arbitrary numbers. Never more than the time-shift buffer.
  private var delay: MediaTime {
    let ten = MediaTime(value: 10, timescale: 1)
    let stated = mpd.suggestedPresentationDelay ?? mpd.latencyTarget
    let longest = longestSegment > .zero ? longestSegment : mpd.maxSegmentDuration ?? .zero
    let minimum = mpd.minBufferTime ?? .zero
    let buffer = min((minimum * 3).half, ten)
    let computed = max(longest * 3, buffer)
    let delay = stated ?? (computed > .zero ? computed : ten)
    guard let depth = mpd.timeShiftBufferDepth, depth > .zero else { return delay }
    return min(delay, depth)
  }

  private func duration(of periods: [Period]) -> MediaTime? {
    if mpd.type == .dynamic { return nil }
    if let duration = mpd.mediaPresentationDuration, duration > .zero { return duration }
    guard let last = periods.last, let length = last.duration ?? last.segmentsDuration else { return nil }
    return last.start + length
  }
}

extension MediaTime {
  /// Rounds up to a millisecond, so that a segment that ends at this time is not left in the future.
  fileprivate var roundedUpToMilliseconds: MediaTime {
    let rounded = MediaTime(value: ticks(timescale: 1000), timescale: 1000)
    return rounded < self ? rounded + MediaTime(value: 1, timescale: 1000) : rounded
  }
}

extension Period {
  /// The duration of its segments, if the manifest does not state its own.
  fileprivate var segmentsDuration: MediaTime? {
    let ends = trackGroups.flatMap(\.rungs).compactMap { rung -> MediaTime? in
      guard case .segments(let list) = rung.media, !list.isEmpty else { return nil }
      return list.end
    }
    return ends.max().map { $0 - start }
  }
}

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

  /// Returns the group of an adaptation set; nil if it has no Representation that can be used.
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
        record(error)
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
    group.hasAlignedSegments = set.hasAlignedSegments
    group.isAutoselected = !roles.contains { Self.addingRoles.contains($0.lowercased()) }
    for (index, rung) in group.rungs.enumerated()
    where group.kind == .video
      && (set.hasAudioComponent || rung.codecs.contains { CodecFamily($0) == .audio })
    {
      group.rungs[index].ownAudio = OwnAudio([group.audioAttributes], isAlone: false)
    }
    group.isTrickMode = period.unplayableReason == nil && isTrickMode(set, in: period)
    return group
  }

  // MARK: - Private

  /// The roles of audio that a player chooses only if a user wants it (ISO/IEC 23009-1 §5.8.5.5).
  private static let addingRoles: Set<String> = [
    "alternate", "commentary", "description", "dub", "enhanced-audio-intelligibility", "karaoke", "sign",
    "supplementary",
  ]

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
    rung.startWithSAP = common.startWithSAP.flatMap { Int($0) }
    if context.kind == .image { rung.tiles = tiles(representation, size: rung.size, set: set, in: context) }
    return rung
  }

  /// Returns the tiles of a Representation of images (DASH-IF IOP 4.3 §6.2.6): @width and @height are those
  /// of a whole segment, and each tile lasts an equal part of a whole segment's duration. Nil for timed
  /// metadata.
  private mutating func tiles(
    _ representation: MPD.Representation, size: PixelSize?, set: MPD.AdaptationSet, in context: SetContext
  ) -> ImageTiles? {
    let own = representation.common
    let property = [own, set.common].lazy.flatMap { $0.essentialProperties + $0.supplementalProperties }
      .first(where: \.isThumbnailTile)
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

  /// Returns true if segments begin with a frame that can be decoded on its own: a SAP of type 1 or 2
  /// (ISO/IEC 23009-1 §5.3.7.2), or a profile that requires it (§8.3, §8.4).
  private func hasIndependentSegments(_ common: MPD.CommonAttributes) -> Bool {
    if let type = common.startWithSAP { return type == "1" || type == "2" }
    return mpd.profiles.contains { profile in
      ["isoff-live:2011", "isoff-on-demand:2011"].contains { profile.hasSuffix($0) }
    }
  }

  /// Determines the kind from the set itself, its first Representation, or its codecs.
  private static func kind(of set: MPD.AdaptationSet) -> TrackGroup.Kind {
    let first = set.representations.first?.common ?? set.common
    if (set.common.essentialProperties + set.common.supplementalProperties + first.essentialProperties)
      .contains(where: \.isThumbnailTile)
      || first.supplementalProperties.contains(where: \.isThumbnailTile)
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
    if set.common.supplementalProperties.contains(where: \.isTrickMode) { return "trick mode" }
    return set.common.essentialProperties.unplayableReason
      ?? resolved(set.common.contentProtections, in: period).segmentEncryption
  }

  /// Returns true if a set can't be played for no other reason than trick mode.
  private func isTrickMode(_ set: MPD.AdaptationSet, in period: PeriodContext) -> Bool {
    let essential = set.common.essentialProperties
    return (essential + set.common.supplementalProperties).contains(where: \.isTrickMode)
      && essential.filter { !$0.isTrickMode }.unplayableReason == nil
      && resolved(set.common.contentProtections, in: period).segmentEncryption == nil
  }

  private func unplayableReason(
    _ representation: MPD.Representation, in period: PeriodContext
  ) -> String? {
    if let dependency = representation.dependencyID, !dependency.isEmpty {
      return "it adds to another representation (\(dependency.excerpt)) and can't be decoded by itself"
    }
    if representation.common.supplementalProperties.contains(where: \.isTrickMode) {
      return "trick mode"
    }
    return representation.common.essentialProperties.unplayableReason
      ?? resolved(representation.common.contentProtections, in: period).segmentEncryption
  }

  /// Returns the protections, with references replaced by those of the period or the MPD (ISO/IEC 23009-1
  /// §5.8.4.1).
  private func resolved(_ protections: [MPD.Protection], in period: PeriodContext) -> [MPD.Protection] {
    protections.map { protection in
      guard let reference = protection.reference else { return protection }
      let ofPeriod = mpd.periods[period.index].contentProtections.prefix(64)
      return ofPeriod.first { $0.referenceID == reference } ?? contentProtections[reference] ?? protection
    }
  }

  /// Returns the video range of the transfer characteristics (ISO/IEC 23091-2 §8.2).
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

  /// Returns the number of channels by the first configuration with a known scheme.
  private static func channels(_ common: MPD.CommonAttributes) -> String? {
    common.audioChannelConfigurations.lazy.compactMap(\.channelCount).first.map(String.init)
  }
}

extension MPD.Descriptor {
  /// True for a property that marks frames for fast forward only (DASH-IF IOP §3.2.9).
  fileprivate var isTrickMode: Bool { scheme.lowercased() == "http://dashif.org/guidelines/trickmode" }

  /// True for a property that marks tiles of thumbnails (DASH-IF IOP §6.2.6).
  fileprivate var isThumbnailTile: Bool {
    ["http://dashif.org/thumbnail_tile", "http://dashif.org/guidelines/thumbnail_tile"]
      .contains(scheme.lowercased())
  }

  /// True for an EssentialProperty that does not keep its element from being played, or whose effect Reel knows.
  fileprivate var isUnderstood: Bool {
    let scheme = scheme.lowercased()
    return isThumbnailTile || scheme == "urn:dvb:dash:fontdownload:2014"
      || scheme.hasPrefix("urn:mpeg:mpegb:cicp:")
  }
}

extension [MPD.Descriptor] {
  /// The reason why a client must ignore an element with these EssentialProperty elements (ISO/IEC 23009-1
  /// §5.8.4.8); nil if it understands all of them.
  fileprivate var unplayableReason: String? {
    for property in self {
      if property.isTrickMode { return "trick mode" }
      guard property.isUnderstood else {
        return "an unknown essential property: \(property.scheme.excerpt)"
      }
    }
    return nil
  }
}

extension [MPD.Protection] {
  /// The scheme by which these ContentProtection elements encrypt whole segments (ISO/IEC 23009-4), as a reason; nil if
  /// none are encrypted. Encrypted samples are reported in `Rung.protection`.
  fileprivate var segmentEncryption: String? {
    guard contains(where: { $0.scheme.lowercased() == "urn:mpeg:dash:sea:2012" }) else { return nil }
    return ContentProtection(self).map { "encrypted: \($0.schemes.joined(separator: ", "))" }
  }
}
