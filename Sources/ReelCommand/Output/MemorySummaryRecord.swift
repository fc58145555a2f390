import Foundation
import ReelPlayback
import ReelPool
import ReelReplay

/// What `reel memory --json` prints last.
struct MemorySummaryRecord: Encodable, Sendable {
  /// What one number of players takes.
  struct Point: Encodable, Sendable {
    let players: Int
    let growthBytes: Int
    let perPlayerBytes: Int?
    /// The players' sums.
    let ledgerBytes: Int
    /// Growth of what no player owns alone.
    let sharedBytes: Int?
    /// Of the growth, what the others leave.
    let unexplainedBytes: Int
    let threads: Int
    let descriptors: Int
    /// From the point before; of the first, from before the first player.
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

  /// How many players fit.
  struct Budget: Encodable, Sendable {
    let bytes: Int
    /// What the process takes without players.
    let fixedBytes: Int
    let perPlayerBytes: Int
    let players: Int
  }

  /// Between players with an open decoder and players without.
  struct WarmDecoder: Encodable, Sendable {
    /// That it was tried with, of each kind.
    let players: Int
    /// Growth of the process's memory for each.
    let costBytes: Int
    /// From play to the second frame, the middle one of the players.
    let warmSecondFrameMs: Double
    let coldSecondFrameMs: Double
  }

  let type = "summary"
  let stage: String
  /// Decoders were kept open.
  let warm: Bool
  let players: Int
  let failed: Int
  /// Of the players, each kind by itself.
  var mean: MemoryKindsRecord?
  /// Of the players' sums.
  var minBytes: Int?
  var maxBytes: Int?
  var standardDeviationBytes: Int?
  let before: MemoryReading
  let after: MemoryReading
  let growthBytes: Int
  var growthPerPlayerBytes: Int?
  /// All players' sums.
  let ledgerBytes: Int
  /// Growth of what no player owns alone; nil where the allocator can't tell.
  let sharedBytes: Int?
  /// Of the growth, what the players' sums and the shared part leave.
  let unexplainedBytes: Int
  var unexplainedPercent: Double?
  var rest: MemoryRest
  var budget: Budget?
  var warmDecoder: WarmDecoder?
  /// Why that is not known; nil for a curve, which does not try it.
  var warmDecoderAbsence: String?
  var curve: [Point]?

  init(
    target: PreloadTarget, accounts: [MemoryLedger.Account], failed: Int, before: MemoryReading,
    after: MemoryReading, rest: MemoryRest, budget: Int, points: [Point]
  ) {
    stage = target.stage.reportName
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

  /// Of all values there are, not of a sample of more.
  private static func deviation(of values: [Int]) -> Int {
    let mean = Double(values.reduce(0, +)) / Double(values.count)
    let squares = values.reduce(0) { $0 + (Double($1) - mean) * (Double($1) - mean) }
    return Int((squares / Double(values.count)).squareRoot().rounded())
  }

  /// By the least squares through the points where there are several, else from the process without players.
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

  /// With what was added from one to the next.
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
