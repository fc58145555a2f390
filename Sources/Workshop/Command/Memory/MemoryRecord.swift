import Foundation
import ReelCore
import ReelPlayback
public import ReelPool
import ReelLab

/// The JSON record of `reel memory` for a player.
struct MemoryPlayerRecord: Encodable, Sendable {
  let type = "player"
  /// The number of the player, from 1.
  let player: Int
  let source: String
  var rung: String?
  var stage: String?
  /// The time at which each stage was reached, from the start of loading.
  var stageMs: [String: Double]?
  var memory: MemoryLedger.Account?
  var error: ErrorRecord?

  init(_ player: MemoryPlayer, account: MemoryLedger.Account, plays: Bool) {
    self.player = player.number + 1
    source = player.argument
    rung = player.rung
    stage = plays ? "playing" : player.stage.reportName
    stageMs = player.stageTimes.reduce(into: [:]) { $0[$1.key.reportName] = $1.value.milliseconds }
    memory = account
  }

  /// A player that was closed because its source failed; `number` is from 0.
  init(_ number: Int, _ argument: String, stage: PreloadStage, error: ReelError) {
    player = number + 1
    source = argument
    self.stage = stage.reportName
    self.error = ErrorRecord(error)
  }
}

/// Bytes by kind, without those that are unknown.
extension MemoryLedger.Account: Encodable {
  /// The bytes of a kind; nil if the allocator can't distinguish players.
  func known(_ kind: MemoryLedger.Kind) -> Int? {
    knowsInternals || ![.internals, .allocator].contains(kind) ? self[kind] : nil
  }

  public func encode(to encoder: any Encoder) throws {
    for kind in MemoryLedger.Kind.allCases { try encoder.encode(["\(kind.rawValue)_bytes": known(kind)]) }
    try encoder.encode(["sum_bytes": byteCount])
  }
}

/// The memory of the process at one time.
struct MemoryReading: Encodable, Sendable {
  /// The memory without a file, by which growth is measured.
  var anonymousBytes = 0
  /// All memory that is private to the process.
  var privateBytes = 0
  var residentBytes = 0
  /// Page tables and the kernel's stacks of threads.
  var kernelBytes = 0
  var threads = 0
  var descriptors = 0
  /// The memory that the allocator takes for allocations that belong to no single player; nil if it does not
  /// report it. An upper bound, because pages that were never written count (`stats.arenas.<i>.resident` of
  /// jemalloc(3)).
  var sharedBytes: Int?

  /// The memory that a cgroup counts: that without a file, the pages of programs and libraries, and the kernel's.
  var containerBytes: Int { residentBytes + kernelBytes }

  /// Zeros if the system has no figures.
  init(_ memory: ProcessMemory?, sharedBytes: Int?) {
    self.sharedBytes = sharedBytes
    guard let memory else { return }
    anonymousBytes = memory.anonymousByteCount
    privateBytes = memory.privateByteCount
    residentBytes = memory.residentByteCount
    kernelBytes = memory.kernelByteCount
    threads = memory.threadCount
    descriptors = memory.descriptorCount
  }
}

/// The activity of the process while its players are idle.
struct MemoryRest: Encodable, Sendable {
  let ms: Double
  let cpuMs: Double

  init(duration: Duration = .zero, processorTime: Duration = .zero) {
    ms = duration.milliseconds
    cpuMs = processorTime.milliseconds
  }
}

/// The last JSON record of `reel memory`.
struct MemorySummaryRecord: Encodable, Sendable {
  /// The number of players that fit into a budget, as a cgroup counts memory.
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
    /// The time from play to the second frame, the median of the players.
    let warmSecondFrameMs: Double
    let coldSecondFrameMs: Double
  }

  /// The figures of playing players.
  struct Playing: Encodable, Sendable {
    /// The number of players that played, three at a time.
    let players: Int
    /// The time for which each of them played.
    let ms: Double
    /// The highest growth of the process's memory while they played, per player.
    let perPlayerBytes: Int
    /// The number of players that fit into the budget while they play.
    let budgetPlayers: Int
  }

  let type = "summary"
  let stage: String
  /// True if decoders were kept open.
  let warm: Bool
  let players: Int
  let failed: Int
  /// The mean over the players, for each kind.
  var mean: MemoryLedger.Account?
  /// The smallest sum of any player.
  var minBytes: Int?
  var maxBytes: Int?
  var standardDeviationBytes: Int?
  let before: MemoryReading
  let after: MemoryReading
  let growthBytes: Int
  var growthPerPlayerBytes: Int?
  /// The sum over all players.
  let ledgerBytes: Int
  /// The growth of memory that belongs to no single player, an upper bound; nil if the allocator does not
  /// report it.
  var sharedBytes: Int?
  /// The growth that neither the players' sums nor the shared part explain.
  let unexplainedBytes: Int
  var unexplainedPercent: Double?
  var rest: MemoryRest
  var budget: Budget?
  var warmDecoder: WarmDecoder?
  /// The reason why the effect of an open decoder is unknown.
  var warmDecoderAbsence: String?
  /// Nil for players that were measured while they played, and if `playingAbsence` states the reason.
  var playing: Playing?
  /// The reason why the memory of playing players is unknown.
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
    mean = Self.mean(of: accounts)
    let sums = accounts.map(\.byteCount)
    minBytes = sums.min()
    maxBytes = sums.max()
    standardDeviationBytes = Self.deviation(of: sums)
    let each = growthBytes / accounts.count
    growthPerPlayerBytes = each
    if growthBytes > 0 {
      unexplainedPercent = (100 * Double(unexplainedBytes) / Double(growthBytes)).rounded(places: 2)
    }
    // What an earlier player has left behind may have served the first ones: then the process grew by less.
    let counted = max((after.containerBytes - before.containerBytes) / accounts.count, mean?.byteCount ?? 0)
    guard counted > 0 else { return }
    self.budget = Budget(
      bytes: budget, fixedBytes: before.containerBytes, perPlayerBytes: counted,
      players: max(0, (budget - before.containerBytes) / counted))
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

  /// Returns the standard deviation of a complete population, not of a sample.
  private static func deviation(of values: [Int]) -> Int {
    let mean = Double(values.reduce(0, +)) / Double(values.count)
    let squares = values.reduce(0) { $0 + (Double($1) - mean) * (Double($1) - mean) }
    return Int((squares / Double(values.count)).squareRoot().rounded())
  }
}
