package import ReelCore
package import ReelManifest

/// Chooses the rung to open, before any media is requested.
package struct RungSelector: Sendable {
  /// The highest bit rate in bits per second.
  package var peakBitRate: Int
  package var maximumHeight: Int?
  /// The key provider. Encrypted rungs whose keys it does not have are excluded if there are others.
  package var keyProvider: (any KeyProvider)?

  package init(peakBitRate: Int, maximumHeight: Int?, keyProvider: (any KeyProvider)? = nil) {
    self.peakBitRate = peakBitRate
    self.maximumHeight = maximumHeight
    self.keyProvider = keyProvider
  }

  /// Returns the highest decodable video rung at or below the cap, or else the lowest decodable one.
  ///
  /// Throws `ReelError.unsupported` if no rung can be decoded. The error states the reason: codecs, encryption,
  /// or no video.
  package func videoRung(in period: Period) throws(ReelError) -> Rung {
    guard let best = try candidates(in: period).first else {
      throw ReelError(.unsupported, "no tracks to play")
    }
    return best
  }

  /// Returns the decodable video rungs in order of preference: those at or under the cap by falling bit rate,
  /// then the others by rising bit rate. Equal rungs keep their manifest order.
  ///
  /// Throws the same errors as `videoRung(in:)`.
  package func candidates(in period: Period) throws(ReelError) -> [Rung] {
    let ladder = try ladder(in: period).enumerated().map {
      (place: $0, rung: $1, bits: $1.ladderBitsPerSecond)
    }
    let affordable = ladder.filter { $0.bits <= peakBitRate }.sorted {
      ($1.bits, $0.place) < ($0.bits, $1.place)
    }
    let others = ladder.filter { $0.bits > peakBitRate }.sorted { ($0.bits, $0.place) < ($1.bits, $1.place) }
    return (affordable + others).map(\.rung)
  }

  /// Returns the decodable video rungs of the main content within the height limit, in the manifest's order;
  /// never empty.
  ///
  /// Throws `ReelError.unsupported` if no rung can be decoded. The error states the reason: codecs, encryption,
  /// or no video; or it is the period's `videoFailure`, if that is the reason.
  package func ladder(in period: Period) throws(ReelError) -> [Rung] {
    let groups = period.trackGroups.filter { $0.kind == .video }
    guard !groups.isEmpty else {
      if let failure = period.videoFailure { throw failure }
      let kinds = Set(period.trackGroups.map { $0.kind == .image ? "images" : $0.kind.rawValue }).sorted()
      guard kinds != ["images"] else {
        throw ReelError(.unsupported, "it contains only images, no video")
      }
      throw ReelError(
        .unsupported,
        kinds.isEmpty ? "no tracks to play" : "no video, only \(kinds.joined(separator: " and "))")
    }
    let playable = groups.filter { $0.unplayableReason == nil }
    guard !playable.isEmpty else {
      if groups.allSatisfy(\.isTrickMode) {
        throw ReelError(
          .unsupported, "the only video is for trick mode (fast forward and rewind), which is not played",
          advice: "take stills of it with reel storyboard, or with reel poster --size")
      }
      throw ReelError(
        .unsupported, groups.compactMap(\.unplayableReason).first ?? "no video that can be played")
    }
    let accessible = playable.accessible(with: keyProvider) { Self.isDecodable($0) }
    let main = accessible.filter { $0.roles.contains("main") }
    let alternates = accessible.filter { !$0.roles.contains("alternate") && !$0.roles.contains("sign") }
    let chosen = main.isEmpty ? (alternates.isEmpty ? accessible : alternates) : main
    var candidates = chosen.flatMap(\.rungs).filter(Self.isDecodable)
    if candidates.isEmpty { candidates = accessible.flatMap(\.rungs).filter(Self.isDecodable) }
    guard !candidates.isEmpty else {
      let codecs = Set(playable.flatMap(\.rungs).flatMap(\.codecs)).sorted().joined(separator: ", ")
      throw ReelError(.unsupported, "no rung has a supported video codec (\(codecs))")
    }
    guard let maximumHeight else { return candidates }
    let low = candidates.filter { ($0.size?.height ?? 0) <= maximumHeight }
    guard low.isEmpty else { return low }
    let least = candidates.compactMap { $0.size?.height }.min()
    return candidates.filter { $0.size?.height == least }
  }

  /// Returns false if the manifest names a video codec that Reel does not decode. True if it names no codecs.
  package static func isDecodable(_ rung: Rung) -> Bool {
    let video = rung.codecs.filter { ![.audio, .text].contains(CodecFamily($0)) }
    return video.isEmpty || video.contains { VideoCodec(manifestName: $0) != nil }
  }
}

extension RungSelector {
  package init(_ configuration: LoadingConfiguration) {
    self.init(
      peakBitRate: configuration.preferredPeakBitRate, maximumHeight: configuration.maximumHeight,
      keyProvider: configuration.keyProvider)
  }
}

extension RungSelector {
  /// Returns the same ladder. If the audio in the segments is wanted although other audio has segments of its own, only
  /// the rungs that have some.
  fileprivate func ladder(
    in period: Period, wantsAudio: Bool, _ configuration: LoadingConfiguration
  ) throws(ReelError) -> [Rung] {
    let ladder = try ladder(in: period)
    guard wantsAudio, period.hasAudio else { return ladder }
    let selector = AudioSelector(
      languages: configuration.audioLanguages, keyProvider: configuration.keyProvider)
    let audible = ladder.filter { selector.choosesOwnAudio(of: $0, in: period) }
    return audible.isEmpty ? ladder : audible
  }
}

extension [TrackGroup] {
  /// Returns the groups reduced to rungs that are in the clear or whose keys are available. If no such rung
  /// is `isUsable`, all groups unchanged.
  package func accessible(with keys: (any KeyProvider)?, isUsable: (Rung) -> Bool) -> [TrackGroup] {
    guard contains(where: { $0.rungs.contains { $0.protection != nil } }) else { return self }
    let accessible = compactMap { group -> TrackGroup? in
      var group = group
      group.rungs = group.rungs.filter { rung in
        guard let protection = rung.protection else { return true }
        guard let keys else { return false }
        return protection.keyIDs.allSatisfy(keys.holdsKey(for:))
      }
      return group.rungs.isEmpty ? nil : group
    }
    return accessible.contains { $0.rungs.contains(where: isUsable) } ? accessible : self
  }
}

extension Rung {
  /// The bit rate by which the ladder is sorted: the peak, or else the average, or else 0.
  package var ladderBitsPerSecond: Int { bitsPerSecond ?? averageBitsPerSecond ?? 0 }
}

/// Finds the rung of a period that corresponds to one of another period, or of an earlier reading of a live
/// manifest.
package struct RungMatcher: Sendable {
  package let rung: Rung
  package let role: ReaderRole
  package let configuration: LoadingConfiguration

  package init(rung: Rung, role: ReaderRole, configuration: LoadingConfiguration) {
    self.rung = rung
    self.role = role
    self.configuration = configuration
  }

  /// Returns the rung with the same id, or else with the nearest bit rate.
  package func rung(in period: Period) throws(ReelError) -> Rung {
    let ladder = try Self.ladder(of: period, role: role, configuration: configuration)
    if let same = ladder.first(where: { $0.id == rung.id }) { return same }
    let wanted = rung.ladderBitsPerSecond
    let near = ladder.min {
      abs($0.ladderBitsPerSecond - wanted) < abs($1.ladderBitsPerSecond - wanted)
    }
    guard let near else { throw ReelError(.unsupported, "no tracks to play") }
    return near
  }

  /// Returns the playable rungs for a role; never empty.
  package static func ladder(
    of period: Period, role: ReaderRole, configuration: LoadingConfiguration
  ) throws(ReelError) -> [Rung] {
    switch role {
    case .main(let wantsAudio):
      try RungSelector(configuration).ladder(in: period, wantsAudio: wantsAudio, configuration)
    case .audio(let group):
      try AudioSelector(
        languages: configuration.audioLanguages, keyProvider: configuration.keyProvider
      ).ladder(in: period, group: group)
    }
  }
}

/// Chooses the audio to play if it has segments of its own.
package struct AudioSelector: Sendable {
  /// In order of preference.
  package var languages: [String]
  /// Used like `RungSelector.keyProvider`.
  package var keyProvider: (any KeyProvider)?

  package init(languages: [String], keyProvider: (any KeyProvider)? = nil) {
    self.languages = languages
    self.keyProvider = keyProvider
  }

  /// Returns the rungs of the one rendition or adaptation set that is played, in the manifest's order; never
  /// empty.
  ///
  /// - Parameter group: The HLS group of the variant (EXT-X-MEDIA GROUP-ID, RFC 8216 §4.3.4.2.1); nil for
  ///   all.
  ///
  /// Throws `ReelError.unsupported` if there is none.
  package func ladder(in period: Period, group: String?) throws(ReelError) -> [Rung] {
    let groups = Self.groups(in: period, group)
    guard let best = best(of: groups) else {
      throw ReelError(
        .unsupported, groups.compactMap(\.unplayableReason).first ?? "no audio that can be played")
    }
    return best.rungs.filter(Self.isDecodable)
  }

  /// Returns true if the audio in the segments of a video rung is played, rather than audio that has segments of its own.
  /// Of equal ones, that in the rung's segments needs no requests of its own.
  package func choosesOwnAudio(of video: Rung, in period: Period) -> Bool {
    let codecs = video.codecs.filter { CodecFamily($0) == .audio }
    let isDecodable = codecs.isEmpty || codecs.contains { AudioCodec(manifestName: $0) != nil }
    guard let own = video.ownAudio, isDecodable else { return false }
    guard !own.isAlone, let other = best(of: Self.groups(in: period, video.audioGroup)) else { return true }
    return own.renditions.contains { rank($0) <= rank(other.audioAttributes) }
  }

  /// Returns false if the manifest names an audio codec that Reel does not decode. True if it names no
  /// codecs.
  package static func isDecodable(_ rung: Rung) -> Bool {
    rung.codecs.isEmpty || rung.codecs.contains { AudioCodec(manifestName: $0) != nil }
  }

  // MARK: - Private

  private static func groups(in period: Period, _ group: String?) -> [TrackGroup] {
    let groups = period.trackGroups.filter { $0.kind == .audio }
    guard let group, groups.contains(where: { $0.id == group }) else { return groups }
    return groups.filter { $0.id == group }
  }

  /// Returns the decodable group with the best rank; of equal ones the first.
  private func best(of groups: [TrackGroup]) -> TrackGroup? {
    let playable = groups.filter { group in
      group.unplayableReason == nil && group.rungs.contains(where: Self.isDecodable)
    }
    return playable.accessible(with: keyProvider, isUsable: Self.isDecodable).min {
      rank($0.audioAttributes) < rank($1.audioAttributes)
    }
  }

  /// The lowest is chosen: the most preferred language, then the default, then what may be chosen without being asked
  /// for, then the main role.
  private func rank(_ audio: AudioAttributes) -> (Int, Int, Int, Int) {
    (
      LanguagePreferences(languages).rank(of: audio.language), audio.isDefault ? 0 : 1,
      audio.isAutoselected ? 0 : 1, audio.roles.contains("main") ? 0 : 1
    )
  }
}

extension AudioSelector {
  /// The highest bit rate of audio to choose, if there is a lower one, in bits per second.
  package static let peakBitRate = 192_000
}

extension Period {
  /// Returns the audio that is played beside a video rung, from segments of its own; nil if there is none.
  package func audioRung(beside video: Rung?, _ configuration: LoadingConfiguration) -> Rung? {
    let selector = AudioSelector(
      languages: configuration.audioLanguages, keyProvider: configuration.keyProvider)
    if let video, selector.choosesOwnAudio(of: video, in: self) { return nil }
    guard hasAudio, let ladder = try? selector.ladder(in: self, group: video?.audioGroup) else { return nil }
    func isLower(_ left: Rung, _ right: Rung) -> Bool {
      left.ladderBitsPerSecond < right.ladderBitsPerSecond
    }
    let affordable = ladder.filter { $0.ladderBitsPerSecond <= AudioSelector.peakBitRate }
    // Of equal ones the first.
    return affordable.reversed().max(by: isLower) ?? ladder.min(by: isLower)
  }
}

extension Presentation {
  /// Returns true if the audio that is played has segments of its own, in any period: that of the rung that is chosen
  /// first.
  package func playsSeparateAudio(_ configuration: LoadingConfiguration) -> Bool {
    let selector = AudioSelector(
      languages: configuration.audioLanguages, keyProvider: configuration.keyProvider)
    return periods.contains { period in
      guard period.hasAudio else { return false }
      guard let rung = try? RungSelector(configuration).videoRung(in: period) else { return true }
      return !selector.choosesOwnAudio(of: rung, in: period)
    }
  }
}

/// The kinds of media in a period.
extension Period {
  /// True if the period has video, whether or not it can be decoded.
  package var hasVideo: Bool { trackGroups.contains { $0.kind == .video } }

  /// True if the period has a separate audio stream that can be decoded.
  package var hasAudio: Bool {
    trackGroups.contains { group in
      group.kind == .audio && group.unplayableReason == nil
        && group.rungs.contains(where: AudioSelector.isDecodable)
    }
  }

  /// Returns true if the period has the media for a reader with this role. Readers skip other periods.
  package func carries(_ role: ReaderRole) -> Bool {
    switch role {
    case .main: hasVideo
    case .audio: hasAudio
    }
  }
}

/// A part of a timeline whose periods lack a kind of media.
package struct Absence: Sendable, Hashable {
  package var start: MediaTime
  /// The end; nil if it is not known.
  package var end: MediaTime?

  package init(start: MediaTime, end: MediaTime? = nil) {
    self.start = start
    self.end = end
  }

  package func contains(_ time: MediaTime) -> Bool { time >= start && end.map { time < $0 } ?? true }
}

extension Presentation {
  /// Returns the parts that lack the media of a role, in order.
  package func absences(of role: ReaderRole) -> [Absence] {
    var absences: [Absence] = []
    var isAbsent = false
    for period in periods {
      if period.carries(role) == isAbsent {
        if isAbsent {
          absences[absences.count - 1].end = period.start
        } else {
          absences.append(Absence(start: period.start))
        }
        isAbsent.toggle()
      }
    }
    return absences
  }

  /// Returns the periods that have the media of a role. If none has it, returns all periods, so that the
  /// first one provides the reason.
  package func periods(carrying role: ReaderRole) -> [Period] {
    let carrying = periods.filter { $0.carries(role) }
    return carrying.isEmpty ? periods : carrying
  }

  /// The time range of audio before the first frame, if a complete (not live) presentation begins without video.
  package var soundBeforeVideo: Range<MediaTime>? {
    guard !isLive, let first = periods.first(where: { $0.hasVideo || $0.hasAudio }), !first.hasVideo,
      let video = periods.first(where: \.hasVideo), first.start < video.start
    else { return nil }
    return first.start..<video.start
  }
}

extension Presentation {
  /// True if there are only image tracks.
  package var holdsImagesOnly: Bool {
    let groups = periods.flatMap(\.trackGroups)
    return groups.allSatisfy { $0.kind == .image }
      && groups.contains { $0.rungs.contains { $0.tiles != nil } }
  }

  /// Returns the playlists of I-frames, and the rungs for trick mode, from which stills may be taken in
  /// addition to the rungs of a period.
  package func keyFrameRungs(in period: Period, besides ladder: [Rung]) -> [Rung] {
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

extension Rung {
  /// The error for a playlist of images that did not arrive in time.
  package var lateImages: ReelError {
    switch media {
    case .playlist(let url):
      ReelError(.timedOut, "the playlist of the images '\(id)' did not come in time", at: url.reelName)
    case .segments, .index: ReelError(.timedOut, "the index of '\(id)' did not come in time")
    }
  }
}
