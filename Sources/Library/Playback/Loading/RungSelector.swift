package import ReelCore
internal import ReelFFmpeg
package import ReelManifest

/// Chooses the rung to open, before any media is requested.
package struct RungSelector: Sendable {
  /// The highest bit rate in bits per second.
  package var bandwidthCap: Int
  package var maximumHeight: Int?
  /// The key provider. Encrypted rungs whose keys it does not have are excluded if there are others.
  package var keyProvider: (any KeyProvider)?

  package init(bandwidthCap: Int, maximumHeight: Int?, keyProvider: (any KeyProvider)? = nil) {
    self.bandwidthCap = bandwidthCap
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
  func candidates(in period: Period) throws(ReelError) -> [Rung] {
    let ladder = try ladder(in: period).enumerated().map {
      (place: $0, rung: $1, bits: $1.ladderBitsPerSecond)
    }
    let affordable = ladder.filter { $0.bits <= bandwidthCap }.sorted {
      ($1.bits, $0.place) < ($0.bits, $1.place)
    }
    let others = ladder.filter { $0.bits > bandwidthCap }.sorted { ($0.bits, $0.place) < ($1.bits, $1.place) }
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
  init(_ configuration: LoadingConfiguration) {
    self.init(
      bandwidthCap: configuration.bandwidthCap, maximumHeight: configuration.maximumHeight,
      keyProvider: configuration.keyProvider)
  }
}

extension [TrackGroup] {
  /// Returns the groups reduced to rungs that are in the clear or whose keys are available. If no such rung
  /// is `isUsable`, all groups unchanged.
  func accessible(with keys: (any KeyProvider)?, isUsable: (Rung) -> Bool) -> [TrackGroup] {
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
  var ladderBitsPerSecond: Int { bitsPerSecond ?? averageBitsPerSecond ?? 0 }
}

/// Finds the rung of a period that corresponds to one of another period, or of an earlier reading of a live
/// manifest.
struct RungMatcher: Sendable {
  let rung: Rung
  let role: ReaderRole
  let configuration: LoadingConfiguration

  /// Returns the rung with the same id, or else with the nearest bit rate.
  func rung(in period: Period) throws(ReelError) -> Rung {
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
  static func ladder(
    of period: Period, role: ReaderRole, configuration: LoadingConfiguration
  ) throws(ReelError) -> [Rung] {
    switch role {
    case .main:
      try RungSelector(configuration).ladder(in: period)
    case .audio(let group):
      try AudioSelector(
        languages: configuration.audioLanguages, keyProvider: configuration.keyProvider
      ).ladder(in: period, group: group)
    }
  }
}
