internal import ReelCore
internal import ReelManifest

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
