import Foundation
import ReelPlayback
import ReelPool
import ReelReplay

/// The last JSON record of `reel memory`.
struct MemorySummaryRecord: Encodable, Sendable {
  /// The memory of one number of players.
  struct Point: Encodable, Sendable {
    let players: Int
    let growthBytes: Int
    let perPlayerBytes: Int?
    /// The sum over all players.
    let ledgerBytes: Int
    /// The growth of memory that belongs to no single player, an upper bound.
    let sharedBytes: Int?
    /// The growth that the other two do not explain.
    let unexplainedBytes: Int
    let threads: Int
    let descriptors: Int
    /// Since the previous point; for the first, since the reading without players.
    var addedPerPlayerBytes: Int?

    init(players: Int, before: MemoryReading, after: MemoryReading, ledger: Int) {
      self.players = players
      growthBytes = after.anonymousBytes - before.anonymousBytes
      perPlayerBytes = players > 0 ? growthBytes / players : nil
      ledgerBytes = ledger
      sharedBytes = MemorySummaryRecord.shared(before, after)
      unexplainedBytes = growthBytes - ledger - (sharedBytes ?? 0)
      threads = after.threads
      descriptors = after.descriptors
    }
  }

  /// How many players fit into a budget.
  struct Budget: Encodable, Sendable {
    let bytes: Int
    /// The memory of the process without players.
    let fixedBytes: Int
    let perPlayerBytes: Int
    let players: Int
  }

  /// The difference between players with an open decoder and players without.
  struct WarmDecoder: Encodable, Sendable {
    /// The number of players of each kind.
    let players: Int
    /// The growth of the process's memory per player.
    let costBytes: Int
    /// From play to the second frame, the median of the players.
    let warmSecondFrameMs: Double
    let coldSecondFrameMs: Double
  }

  /// Players that play.
  struct Playing: Encodable, Sendable {
    /// The number that played at once.
    let players: Int
    /// How long they played.
    let ms: Double
    /// The highest growth of the process's memory in that time, per player.
    let perPlayerBytes: Int
    /// How many fit into the budget while they play.
    let budgetPlayers: Int
  }

  let type = "summary"
  let stage: String
  /// Decoders were kept open.
  let warm: Bool
  let players: Int
  let failed: Int
  /// The mean over the players, for each kind.
  var mean: MemoryKindsRecord?
  /// The smallest sum of a player.
  var minBytes: Int?
  var maxBytes: Int?
  var standardDeviationBytes: Int?
  let before: MemoryReading
  let after: MemoryReading
  let growthBytes: Int
  var growthPerPlayerBytes: Int?
  /// The sum over all players.
  let ledgerBytes: Int
  /// The growth of memory that belongs to no single player, an upper bound; nil if the allocator can't tell.
  let sharedBytes: Int?
  /// The growth that neither the players' sums nor the shared part explain.
  let unexplainedBytes: Int
  var unexplainedPercent: Double?
  var rest: MemoryRest
  var budget: Budget?
  var warmDecoder: WarmDecoder?
  /// Why the effect of an open decoder is unknown; nil for a curve, which does not measure it.
  var warmDecoderAbsence: String?
  /// Nil for players that were measured while they played, and where `playingAbsence` says why.
  var playing: Playing?
  /// Why the memory of players that play is unknown; nil for a curve, which does not measure it.
  var playingAbsence: String?
  var curve: [Point]?

  init(
    stage: String, target: PreloadTarget, accounts: [MemoryLedger.Account], failed: Int,
    before: MemoryReading,
    after: MemoryReading, rest: MemoryRest, budget: Int, points: [Point]
  ) {
    self.stage = stage
    warm = target.isDecoderWarm
    players = accounts.count
    self.failed = failed
    self.before = before
    self.after = after
    self.rest = rest
    growthBytes = after.anonymousBytes - before.anonymousBytes
    ledgerBytes = accounts.reduce(0) { $0 + $1.byteCount }
    sharedBytes = Self.shared(before, after)
    unexplainedBytes = growthBytes - ledgerBytes - (sharedBytes ?? 0)
    curve = Self.rises(points)
    guard !accounts.isEmpty else { return }
    mean = MemoryKindsRecord(Self.mean(of: accounts))
    let sums = accounts.map(\.byteCount)
    minBytes = sums.min()
    maxBytes = sums.max()
    standardDeviationBytes = Self.deviation(of: sums)
    growthPerPlayerBytes = growthBytes / accounts.count
    if growthBytes > 0 {
      unexplainedPercent = (100 * Double(unexplainedBytes) / Double(growthBytes)).rounded(places: 2)
    }
    self.budget = Self.fit(budget, points: points, before: before)
  }

  // MARK: - Private

  private static func shared(_ before: MemoryReading, _ after: MemoryReading) -> Int? {
    guard let old = before.sharedBytes, let new = after.sharedBytes else { return nil }
    return new - old
  }

  private static func mean(of accounts: [MemoryLedger.Account]) -> MemoryLedger.Account {
    var mean = MemoryLedger.Account()
    for kind in MemoryLedger.Kind.allCases {
      mean[kind] = accounts.reduce(0) { $0 + $1[kind] } / accounts.count
    }
    mean.knowsInternals = accounts.allSatisfy(\.knowsInternals)
    return mean
  }

  /// The standard deviation of a complete population, not of a sample.
  private static func deviation(of values: [Int]) -> Int {
    let mean = Double(values.reduce(0, +)) / Double(values.count)
    let squares = values.reduce(0) { $0 + (Double($1) - mean) * (Double($1) - mean) }
    return Int((squares / Double(values.count)).squareRoot().rounded())
  }

  /// From a least-squares fit through several points, or else from the process without players.
  private static func fit(_ budget: Int, points: [Point], before: MemoryReading) -> Budget? {
    let points = points.filter { $0.players > 0 }
    guard let last = points.last, let lastEach = last.perPlayerBytes else { return nil }
    var (each, fixed) = (Double(lastEach), 0.0)
    if points.count > 1 {
      let count = Double(points.count)
      let meanX = points.reduce(0) { $0 + Double($1.players) } / count
      let meanY = points.reduce(0) { $0 + Double($1.growthBytes) } / count
      let squares = points.reduce(0) { $0 + (Double($1.players) - meanX) * (Double($1.players) - meanX) }
      let products = points.reduce(0) {
        $0 + (Double($1.players) - meanX) * (Double($1.growthBytes) - meanY)
      }
      if squares > 0 {
        each = products / squares
        fixed = meanY - each * meanX
      }
    }
    guard each >= 1 else { return nil }
    let base = before.anonymousBytes + Int(max(0, fixed))
    return Budget(
      bytes: budget, fixedBytes: base, perPlayerBytes: Int(each),
      players: max(0, Int(Double(budget - base) / each)))
  }

  /// The points with the growth since the previous one.
  private static func rises(_ points: [Point]) -> [Point] {
    var points = points
    var (players, growth) = (0, 0)
    for index in points.indices {
      let added = points[index].players - players
      if added > 0 { points[index].addedPerPlayerBytes = (points[index].growthBytes - growth) / added }
      (players, growth) = (points[index].players, points[index].growthBytes)
    }
    return points
  }
}
