import Foundation
import ReelPlayback
import ReelPool
import ReelReplay

/// The last JSON record of `reel memory`.
struct MemorySummaryRecord: Encodable, Sendable {
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
  var sharedBytes: Int?
  /// The growth that neither the players' sums nor the shared part explain.
  let unexplainedBytes: Int
  var unexplainedPercent: Double?
  var rest: MemoryRest
  var budget: Budget?
  var warmDecoder: WarmDecoder?
  /// Why the effect of an open decoder is unknown.
  var warmDecoderAbsence: String?
  /// Nil for players that were measured while they played, and where `playingAbsence` says why.
  var playing: Playing?
  /// Why the memory of players that play is unknown.
  var playingAbsence: String?

  init(
    stage: String, target: PreloadTarget, accounts: [MemoryLedger.Account], failed: Int,
    before: MemoryReading,
    after: MemoryReading, rest: MemoryRest, budget: Int
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
    if let old = before.sharedBytes, let new = after.sharedBytes { sharedBytes = new - old }
    unexplainedBytes = growthBytes - ledgerBytes - (sharedBytes ?? 0)
    guard !accounts.isEmpty else { return }
    mean = MemoryKindsRecord(Self.mean(of: accounts))
    let sums = accounts.map(\.byteCount)
    minBytes = sums.min()
    maxBytes = sums.max()
    standardDeviationBytes = Self.deviation(of: sums)
    let each = growthBytes / accounts.count
    growthPerPlayerBytes = each
    if growthBytes > 0 {
      unexplainedPercent = (100 * Double(unexplainedBytes) / Double(growthBytes)).rounded(places: 2)
    }
    guard each > 0 else { return }
    self.budget = Budget(
      bytes: budget, fixedBytes: before.anonymousBytes, perPlayerBytes: each,
      players: max(0, (budget - before.anonymousBytes) / each))
  }

  // MARK: - Private

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
}
