import Foundation
import ReelCore
import ReelPool

/// The report of `reel memory` as text.
enum MemoryText {
  static func text(of result: MemoryJob.Outcome) -> String {
    let summary = result.summary
    var lines: [String] = []
    let players = result.players.filter { $0.error == nil }
    if !players.isEmpty { lines += table(players, mean: summary.mean) + [""] }
    lines += facts(summary)
    return lines.joined(separator: "\n")
  }

  // MARK: - Private

  private static let sourceWidth = 40

  private static func table(_ players: [MemoryPlayerRecord], mean: MemoryLedger.Account?) -> [String] {
    var table = Table([.right, .left, .left, .left])
    table.add(
      [
        "player", "source", "rung", "stage", "manifest", "in flight", "packets", "frames", "decoder",
        "internals", "allocator", "sum MB",
      ])
    for player in players {
      guard let memory = player.memory else { continue }
      table.add(
        ["\(player.player)", short(player.source), short(player.rung ?? "-"), player.stage ?? "-"]
          + words(memory))
    }
    if let mean { table.add(["mean", "", "", ""] + words(mean)) }
    return table.lines
  }

  private static func words(_ memory: MemoryLedger.Account) -> [String] {
    let kinds = MemoryLedger.Kind.allCases.filter { $0 != .output }
    return kinds.map { memory.known($0).map(megabytes) ?? "?" } + [megabytes(memory.byteCount)]
  }

  private static func facts(_ summary: MemorySummaryRecord) -> [String] {
    var lines: [[String]] = []
    let count = summary.players.counted("player")
    let failed = summary.failed > 0 ? ", \(summary.failed) failed" : ""
    let plays = summary.stage == "playing"
    let state = plays ? "playing" : "at \(summary.stage)\(summary.warm ? ", decoders open" : "")"
    var players = "\(count) \(state)\(failed)"
    if let mean = summary.mean, let least = summary.minBytes, let most = summary.maxBytes,
      let deviation = summary.standardDeviationBytes
    {
      players +=
        ": \(megabytes(mean.byteCount)) MB each, from \(megabytes(least)) to \(megabytes(most)),"
        + " standard deviation \(megabytes(deviation))"
    }
    lines.append(["players", players])
    if let each = summary.growthPerPlayerBytes {
      lines.append([
        "process",
        "anonymous memory: \(megabytes(summary.before.anonymousBytes)) MB before the first player,"
          + " \(megabytes(summary.after.anonymousBytes)) MB now: grown by \(megabytes(summary.growthBytes)) MB,"
          + " \(megabytes(each)) MB per player",
      ])
      if let shared = summary.sharedBytes {
        lines.append(["not attributed", notAttributed(shared, summary)])
      }
      lines.append([
        "unexplained",
        summary.unexplainedBytes < 0
          ? "none"
          : "\(megabytes(summary.unexplainedBytes)) MB,"
            + " \(percent(summary.unexplainedBytes, of: summary.growthBytes)) of the growth",
      ])
    }
    lines.append([
      plays ? "while playing" : "at rest",
      "\(summary.after.threads.counted("thread")) (\(summary.before.threads) before),"
        + " \(summary.after.descriptors) descriptors (\(summary.before.descriptors) before),"
        + " \(summary.rest.cpuMs.formatted(places: 1)) ms of processor time in \(summary.rest.ms.formatted(places: 0)) ms",
    ])
    if let budget = summary.budget {
      lines.append([
        "budget",
        "\(ByteSize(byteCount: budget.bytes)) holds \(budget.players.counted(plays ? "playing player" : "resting player")), as a container counts:"
          + " \(megabytes(budget.fixedBytes)) MB for the process with its libraries, and \(megabytes(budget.perPlayerBytes)) MB per player",
      ])
    }
    if let playing = summary.playing {
      lines.append([
        "playing",
        "up to \(megabytes(playing.perPlayerBytes)) MB per player, measured with"
          + " \(playing.players.counted("player")) for \((playing.ms / 1000).formatted(places: 1)) s each:"
          + " the budget holds \(playing.budgetPlayers) playing players",
      ])
    }
    if let absence = summary.playingAbsence { lines.append(["playing", absence.printable]) }
    if let warm = summary.warmDecoder {
      lines.append([
        "open decoder",
        "takes \(megabytes(warm.costBytes)) MB per player; the second frame comes"
          + " \(warm.warmSecondFrameMs.formatted(places: 1)) ms after play() with it,"
          + " \(warm.coldSecondFrameMs.formatted(places: 1)) ms without",
      ])
    }
    if let absence = summary.warmDecoderAbsence { lines.append(["open decoder", absence.printable]) }
    var table = Table([.left, .left])
    for line in lines { table.add(line) }
    return table.lines
  }

  /// Returns the text on memory that belongs to no single player. The allocator's figure includes pages that were never
  /// written and so take no memory (`stats.arenas.<i>.resident` of jemalloc(3)), so it is limited to the growth beyond
  /// the players' sums.
  private static func notAttributed(_ byteCount: Int, _ summary: MemorySummaryRecord) -> String {
    let shown = min(byteCount, max(0, summary.growthBytes - summary.ledgerBytes))
    let each = shown / max(1, summary.players)
    return "\(megabytes(shown)) MB (connections, tasks), \(megabytes(each)) MB per player"
  }

  private static func megabytes(_ byteCount: Int) -> String {
    String(format: "%.3f", Double(byteCount) / 1e6)
  }

  private static func percent(_ part: Int, of whole: Int) -> String {
    whole > 0 ? String(format: "%.1f %%", 100 * Double(part) / Double(whole)) : "-"
  }

  /// Returns the end of a long name, which is more informative than its beginning.
  private static func short(_ name: String) -> String {
    let name = name.withoutUserInformation
    return name.count > sourceWidth ? "…" + name.suffix(sourceWidth - 1) : name
  }
}
