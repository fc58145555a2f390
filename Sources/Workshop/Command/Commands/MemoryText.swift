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

  private static func table(_ players: [MemoryPlayerRecord], mean: MemoryKindsRecord?) -> [String] {
    var table = TextTable([.right, .left, .left, .left])
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

  private static func words(_ memory: MemoryKindsRecord) -> [String] {
    [
      memory.manifestBytes, memory.inFlightBytes, memory.packetsBytes, memory.framesBytes,
      memory.decoderBytes,
      memory.internalsBytes, memory.allocatorBytes, memory.sumBytes,
    ].map { $0.map(megabytes) ?? "?" }
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
        ": \(megabytes(mean.sumBytes)) MB each, from \(megabytes(least)) to \(megabytes(most)),"
        + " standard deviation \(megabytes(deviation))"
    }
    lines.append(["players", players])
    if let each = summary.growthPerPlayerBytes {
      lines.append([
        "process",
        "\(megabytes(summary.before.anonymousBytes)) MB before the first player,"
          + " \(megabytes(summary.after.anonymousBytes)) MB now: grown by \(megabytes(summary.growthBytes)) MB,"
          + " \(megabytes(each)) MB per player",
      ])
      if let shared = summary.sharedBytes { lines.append(["shared", self.shared(shared, summary)]) }
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
        "\(ByteSize(byteCount: budget.bytes)) hold \(budget.players.counted(plays ? "playing player" : "resting player")):"
          + " \(megabytes(budget.fixedBytes)) MB for the process and \(megabytes(budget.perPlayerBytes)) MB per player",
      ])
    }
    if let playing = summary.playing {
      lines.append([
        "playing",
        "up to \(megabytes(playing.perPlayerBytes)) MB per player, measured with"
          + " \(playing.players) for \((playing.ms / 1000).formatted(places: 1)) s:"
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
    var table = TextTable([.left, .left])
    for line in lines { table.add(line) }
    return table.lines
  }

  /// What belongs to no single player. The allocator's figure is a maximum, as it includes pages that were never
  /// written and so take no memory (`stats.arenas.<i>.resident` of jemalloc(3)). The growth leaves no room for the rest.
  private static func shared(_ byteCount: Int, _ summary: MemorySummaryRecord) -> String {
    let room = max(0, summary.growthBytes - summary.ledgerBytes)
    let isBound = byteCount > room
    let shown = min(byteCount, room)
    return "\(isBound ? "at most " : "")\(megabytes(shown)) MB of it,"
      + " \(megabytes(shown / max(1, summary.players))) MB per player: connections, tasks and other memory that no"
      + " single player owns"
      + (isBound
        ? "; the allocator counts \(megabytes(byteCount)) MB, with pages that were never written" : "")
  }

  private static func megabytes(_ byteCount: Int) -> String {
    String(format: "%.3f", Double(byteCount) / 1e6)
  }

  private static func percent(_ part: Int, of whole: Int) -> String {
    whole > 0 ? String(format: "%.1f %%", 100 * Double(part) / Double(whole)) : "-"
  }

  /// The end of a long name, which is more telling than its beginning.
  private static func short(_ name: String) -> String {
    name.count > sourceWidth ? "…" + name.suffix(sourceWidth - 1) : name
  }
}
