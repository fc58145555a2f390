import ReelCore
internal import ReelModels
internal import ReelPool
import ReelSimulation

/// What the walks of a comparison simulate, in words.
package struct LabScene: Sendable {
  /// The modelled player, with a remark if it was not measured; nil for Reel's pool.
  package var player: String?
  /// What the links model, such as `slow start, TLS, DNS`; nil for the real network.
  package var links: String?
  /// The time from the end of a drag to the settle.
  package var settle: Duration
  package var isSimulated = true
  /// What the pools of a modelled player preload: `preloading one item ahead (3 s)`.
  package var preloads: [LabPool: String] = [:]
  /// Pools that are walked for advice alone.
  package var variants: Set<LabPool> = []
  /// The visits of each walk; nil for one without a simulated cache.
  package var visits: VisitPlan?

  package init(player: String?, links: String?, settle: Duration) {
    (self.player, self.links, self.settle) = (player, links, settle)
  }
}

extension LabScene {
  package init(_ inputs: LabInputs) {
    let configuration = inputs.configuration
    let models = Set(inputs.links.map(\.spec.modelledWords)).sorted()
    self.init(
      player: configuration.player?.title, links: models.joined(separator: ", or "),
      settle: configuration.settle)
    visits = configuration.visits
    for policy in configuration.modelledPolicies {
      for slotCount in configuration.slotCounts {
        let pool = LabPool(slotCount: slotCount, policy: policy.description)
        preloads[pool] = policy.variant ?? (try? policy.model(players: slotCount))?.preloadWords
        if policy.variant != nil { variants.insert(pool) }
      }
    }
  }
}

/// The first line of a lab and of a comparison: the answer as a sentence with its uncertainty, and what was simulated.
///
/// It names the pool that is worth its bytes (``LabVerdict``), what it gains over the reference, and what the next one would
/// add. Without a pair of walks it has no interval, and with few pairs it says so.
package struct LabAnswer {
  private let summary: LabSummary
  private let scene: LabScene
  private let doneCount: Int

  /// - Parameter doneCount: The number of walks that were not interrupted; nil for all.
  package init(_ summary: LabSummary, _ scene: LabScene, doneCount: Int? = nil) {
    (self.summary, self.scene, self.doneCount) = (summary, scene, doneCount ?? summary.runCount)
  }

  /// Empty without walks.
  package var text: String {
    guard let group = summary.overall else { return "" }
    let isPart = doneCount < summary.plannedCount
    let part = isPart ? "So far, \(doneCount) of \(summary.plannedCount.counted("walk")): " : ""
    let opening = "\(isPart ? "w" : "W")ith \(player) on \(links)"
    var sentences: [String] = []
    if let verdict {
      let isSingle = verdict.pools.count == 1
      sentences.append("\(part)\(opening), \(isSingle ? single(verdict) : comparison(verdict)).")
      sentences.append(certainty(verdict))
      sentences.append(abandonment(verdict))
      sentences.append(visits(of: verdict.advised) ?? "")
    } else if summary.failures.isEmpty, group.rows.allSatisfy({ $0.failedCount == 0 }) {
      sentences.append("\(part)\(opening), no swipe was counted, so there are no waits.")
    } else {
      sentences.append("\(part)\(opening), nothing could be played, so there are no waits.")
    }
    return (sentences + [conditions, failures(of: group)]).filter { !$0.isEmpty }.joined(separator: " ")
  }

  /// Whether a cache is worth it with a pool; nil for walks with one visit and no cache.
  package func visits(of pool: LabPool) -> String? {
    guard let plan = scene.visits, let walks = summary.visits.first(where: { $0.pool == pool })?.walks else {
      return nil
    }
    let place = summary.visits.count > 1 ? "With \(words(for: pool)): " : ""
    return place + plan.verdict(walks)
  }

  /// The pools by their waits; nil without waits.
  package var verdict: LabVerdict? {
    summary.overall.flatMap { LabVerdict($0) { !scene.variants.contains($0) } }
  }

  // MARK: - Numbers

  /// A time, `1.02 s` from 1 s on and `130 ms` below, with its interval in the same unit: `970 ms [900, 1040]`.
  package static func time(_ milliseconds: Double, _ interval: PairedBootstrap.Interval? = nil) -> String {
    let isLong = milliseconds.magnitude >= 999.5
    let places = isLong ? 2 : milliseconds.magnitude >= 9.95 ? 0 : 1
    func text(_ value: Double) -> String {
      (value / (isLong ? 1000 : 1)).formatted(places: places).signed
    }
    let time = "\(text(milliseconds)) \(isLong ? "s" : "ms")"
    return interval.map { "\(time) [\(text($0.lower)), \(text($0.upper))]" } ?? time
  }

  /// A list of names: `a`, `a and b`, `a, b and c`.
  static func list(_ names: [String]) -> String {
    guard names.count > 1, let last = names.last else { return names.first ?? "" }
    return "\(names.dropLast().joined(separator: ", ")) and \(last)"
  }

  // MARK: - Private

  private var dimensions: LabSummary.Dimensions { summary.dimensions }

  private var player: String {
    if let player = scene.player { return player }
    let counts = dimensions.slotCounts
    return "Reel's own pool" + (counts.count == 1 ? " of \(counts[0].counted("player"))" : "")
  }

  private var links: String {
    let groups = dimensions.linkGroups.filter { !$0.isEmpty }
    let names = dimensions.links.filter { !$0.isEmpty }
    if names.isEmpty { return scene.links == nil ? "the real network" : "no link" }
    if names.count <= Self.namedCount { return Self.list(names) }
    return "\(names.count) links" + (groups.count == 1 ? " of \(groups[0])" : "")
  }

  /// The most names that are listed.
  private static let namedCount = 4

  private func words(for pool: LabPool) -> String {
    let policy = scene.preloads[pool] ?? pool.policy
    return dimensions.slotCounts.count > 1 && scene.preloads[pool] == nil
      ? "\(policy) with \(pool.slotCount.counted("player"))" : policy
  }

  private func single(_ verdict: LabVerdict) -> String {
    let pool = verdict.best
    let waits = verdict.group.values(LabVerdict.delay, of: pool)
    let wait = Self.time(verdict.mean(LabVerdict.delay, of: pool), PairedBootstrap.interval(of: waits))
    let bytes = verdict.mean(LabVerdict.bytes, of: pool) * share(verdict, of: pool)
    let fetched = bytes > 0 ? " and fetches \(size(bytes)) per \(unit(verdict))" : ""
    return "\(words(for: pool)) leaves a wait at p95 of \(wait)\(fetched)"
  }

  private func comparison(_ verdict: LabVerdict) -> String {
    let (reference, advised) = (verdict.reference, verdict.advised)
    let wait = Self.time(verdict.mean(LabVerdict.delay, of: advised))
    let areSame = verdict.pools.dropFirst().allSatisfy { pool in
      isSame(pool, verdict.pools[0], verdict) && median(of: pool, minus: verdict.pools[0], verdict).isEmpty
    }
    if areSame {
      let cheapest = verdict.pools.filter { $0 != advised }.allSatisfy {
        cost(of: $0, minus: advised, verdict) == Self.sameBytes
      }
      return "the wait at p95 is the same, \(wait), with \(Self.list(verdict.pools.map(words)))"
        + (cheapest ? "" : "; \(words(for: advised)) fetches least")
    }
    var text: String
    if advised == reference {
      text = "\(words(for: reference)) is enough, with a wait at p95 of \(wait)"
    } else if let found = verdict.difference(LabVerdict.delay, of: advised, minus: reference) {
      let cost = cost(of: advised, minus: reference, verdict)
      let saved = Self.time(-found.mean, found.interval?.negated)
      let before = Self.time(verdict.mean(LabVerdict.delay, of: reference))
      text =
        if isTold(found), found.mean < 0 {
          "\(words(for: advised)) shortens the wait at p95 by \(saved), from \(before) to \(wait), \(cost)"
        } else if isTold(found) {
          "\(words(for: advised)) waits \(wait) at p95, \(Self.time(found.mean, found.interval)) longer than "
            + "\(words(for: reference))\(median(of: advised, minus: reference, verdict)), \(cost)"
        } else {
          "\(words(for: advised)) waits \(wait) at p95, "
            + (isSame(advised, reference, verdict)
              ? "the same as \(words(for: reference))"
              : "which can't be told from \(before) of \(words(for: reference))")
            + "\(median(of: advised, minus: reference, verdict)), \(cost)"
        }
    } else {
      text = "\(words(for: advised)) has the shortest wait at p95, \(wait)"
    }
    text += quality(of: advised, minus: reference, verdict)
    if let next = next(after: advised, verdict) { text += "; \(addition(of: next, to: advised, verdict))" }
    return text
  }

  /// What a choice costs beside bytes: `, but stalls for 3.1 % instead of 0 % of the time`.
  private func quality(of pool: LabPool, minus other: LabPool, _ verdict: LabVerdict) -> String {
    guard pool != other else { return "" }
    var parts: [String] = []
    if let found = verdict.difference(Self.rebuffering, of: pool, minus: other), isTold(found), found.mean > 0
    {
      let shares = [pool, other].map { (verdict.mean(Self.rebuffering, of: $0) * 100).formatted(places: 1) }
      if shares[0] != shares[1] {
        parts.append("stalls for \(shares[0]) % instead of \(shares[1]) % of the time")
      }
    }
    let rates = [pool, other].map { verdict.mean(Self.rate, of: $0) }
    if rates[0] > 0, rates[0] < rates[1] * Self.lowerRate {
      let texts = rates.map { WalkValue.text(bitsPerSecond: $0) }
      parts.append("plays \(texts[0]) on average instead of \(texts[1])")
    }
    return parts.isEmpty ? "" : ", but \(Self.list(parts))"
  }

  private static let rebuffering = WalkFigures["rebuffering"]
  private static let rate = WalkFigures["rung.mean"]
  /// The share of a bit rate below which another one is lower.
  private static let lowerRate = 0.95

  /// The best pool, if it is neither the advised one nor the reference; else the one that fetches least of those that
  /// fetch more.
  private func next(after advised: LabPool, _ verdict: LabVerdict) -> LabPool? {
    if verdict.best != advised, verdict.best != verdict.reference { return verdict.best }
    let bytes = { verdict.mean(LabVerdict.bytes, of: $0) }
    return verdict.pools.filter { $0 != advised && $0 != verdict.reference && bytes($0) >= bytes(advised) }
      .min { bytes($0) < bytes($1) }
  }

  /// What a pool would add to the advised one: `a second item ahead saves another 4 ms [−2, 9]`.
  func addition(of pool: LabPool, to advised: LabPool, _ verdict: LabVerdict) -> String {
    let (name, cost) = (relation(of: pool, to: advised), cost(of: pool, minus: advised, verdict))
    guard let found = verdict.difference(LabVerdict.delay, of: pool, minus: advised) else { return name }
    let median = median(of: pool, minus: advised, verdict)
    if isSame(pool, advised, verdict) { return "\(name) waits the same\(median), \(cost)" }
    let isShorter = found.mean < 0
    let interval = isShorter ? found.interval?.negated : found.interval
    let amount = Self.time(found.mean.magnitude, interval)
    let another = name == words(for: pool) ? "" : "another "
    let doubt = isTold(found) ? "" : ", which can't be told from 0"
    return
      "\(name) \(isShorter ? "saves \(another)\(amount)" : "waits \(amount) longer")\(doubt)\(median), \(cost)"
  }

  /// What a viewer would notice at the median: `, and saves 620 ms at p50`.
  private func median(of pool: LabPool, minus other: LabPool, _ verdict: LabVerdict) -> String {
    guard let found = verdict.difference(LabVerdict.median, of: pool, minus: other), isTold(found),
      found.mean.magnitude > LabVerdict.unnoticed
    else { return "" }
    let amount = Self.time(found.mean.magnitude)
    return found.mean < 0 ? ", and saves \(amount) at p50" : ", and waits \(amount) longer at p50"
  }

  private func relation(of pool: LabPool, to other: LabPool) -> String {
    let counts = ["preloading one item ahead", "preloading two items ahead", "preloading three items ahead"]
    let (words, others) = (words(for: pool), words(for: other))
    for (place, ordinal) in ["second", "third"].enumerated()
    where others.hasPrefix(counts[place]) && words.hasPrefix(counts[place + 1])
      && seconds(others) == seconds(words)
    {
      return "a \(ordinal) item ahead"
    }
    return words
  }

  private func seconds(_ words: String) -> Substring { words.drop { $0 != "(" }.prefix { $0 != "s" } }

  private func isSame(_ pool: LabPool, _ other: LabPool, _ verdict: LabVerdict) -> Bool {
    guard pool != other, let found = verdict.difference(LabVerdict.delay, of: pool, minus: other) else {
      return pool == other
    }
    let ends = [found.interval?.lower ?? found.mean, found.interval?.upper ?? found.mean]
    return ends.allSatisfy { $0.magnitude < Self.smallest }
  }

  /// A time in milliseconds that prints as 0.
  private static let smallest = 0.05

  func isTold(_ found: LabDifference.Figure) -> Bool {
    found.interval?.excludesZero ?? (found.mean.magnitude >= Self.smallest)
  }

  private static let sameBytes = "for the same bytes"

  private func cost(of pool: LabPool, minus other: LabPool, _ verdict: LabVerdict) -> String {
    guard let found = verdict.difference(LabVerdict.bytes, of: pool, minus: other) else {
      return Self.sameBytes
    }
    let bytes = found.mean * share(verdict, of: pool)
    if bytes.magnitude < 1000 { return Self.sameBytes }
    let whole = verdict.mean(LabVerdict.bytes, of: other) * share(verdict, of: other)
    if bytes.magnitude < whole * LabVerdict.sameShare { return "for about the same bytes" }
    let amount = "\(size(bytes.magnitude)) \(bytes > 0 ? "more" : "less") per \(unit(verdict))"
    return "for \(amount)"
  }

  private func size(_ bytes: Double) -> String { ByteSize(byteCount: Int(bytes)).description }

  private static let swipes = WalkFigures["swipes"]

  /// The share of a walk's bytes that ten swipes have; 1 if the number of swipes is not known.
  private func share(_ verdict: LabVerdict, of pool: LabPool) -> Double {
    let swipes = verdict.mean(Self.swipes, of: pool)
    return swipes > 0 ? 10 / swipes : 1
  }

  private func unit(_ verdict: LabVerdict) -> String {
    verdict.mean(Self.swipes, of: verdict.best) > 0 ? "10 swipes" : "walk"
  }

  /// How many walks there are, and what their intervals are worth.
  private func certainty(_ verdict: LabVerdict) -> String {
    let counts = verdict.pools.map { pool in
      verdict.difference(LabVerdict.delay, of: pool, minus: verdict.reference)?.pairCount ?? 0
    }
    let isSingle = verdict.pools.count == 1
    let count = isSingle ? verdict.group.values(LabVerdict.delay, of: verdict.best).count : counts.min() ?? 0
    let each = isSingle ? "" : " for each choice"
    return switch count {
    case ...0: "No walks can be compared: each choice has its own."
    case 1: "From one walk\(each), so without an interval."
    case ..<LabVerdict.surePairCount:
      "From only \(count) walks\(each), so the 95 % intervals are too narrow to rely on."
    default: "From \(count) walks\(each), with 95 % intervals."
    }
  }

  /// How many swipes had no frame: their waits are as long as the viewer stayed.
  private func abandonment(_ verdict: LabVerdict) -> String {
    let pools =
      verdict.advised == verdict.reference ? [verdict.advised] : [verdict.reference, verdict.advised]
    let shares = pools.map { (pool: $0, share: abandonedShare(of: $0, verdict)) }
    guard shares.contains(where: { $0.share >= Self.someAbandoned }) else { return "" }
    let each = shares.map {
      "\(($0.share * 100).formatted(places: 0)) % of swipes with \(words(for: $0.pool))"
    }
    return
      "No frame came before the viewer left in \(Self.list(each)): there the time until then counts as the wait."
  }

  /// The share of swipes to which no frame came before the viewer left.
  func abandonedShare(of pool: LabPool, _ verdict: LabVerdict) -> Double {
    verdict.mean(Self.abandoned, of: pool) / max(1, verdict.mean(Self.swipes, of: pool))
  }

  private static let abandoned = WalkFigures["abandoned"]
  private static let someAbandoned = 0.05

  private var conditions: String {
    let links = scene.links.map { " (links: \($0))" } ?? ""
    let settle = Self.time(scene.settle / .milliseconds(1))
    let moment = scene.settle == .zero ? "the end of the drag" : "the settle, \(settle) after the drag,"
    return
      "\(scene.isSimulated ? "Simulated" : "In real time")\(links): waits from \(moment) to the second frame."
  }

  private func failures(of group: LabGroup) -> String {
    let failedCount = group.rows.reduce(0) { $0 + $1.failedCount }
    let walks =
      failedCount > 0
      ? [
        "\(failedCount) of \(group.runCount.counted("walk")) failed and \(failedCount == 1 ? "is" : "are") left out."
      ]
      : []
    let names = summary.failures.map(summary.name)
    let more = names.count - Self.namedCount
    let listed = Array(names.prefix(Self.namedCount)) + (more > 0 ? ["\(more) more"] : [])
    let items =
      names.isEmpty
      ? []
      : [
        "\(names.count.counted("item")) failed and \(names.count == 1 ? "has" : "have") no waits: \(Self.list(listed))."
      ]
    return (walks + items).joined(separator: " ")
  }
}

extension String {
  /// The number with a minus sign (U+2212), and no sign before 0.
  package var signed: String {
    let isZero = hasPrefix("-") && !contains { ("1"..."9").contains($0) }
    return isZero ? String(dropFirst()) : replacing("-", with: "−")
  }
}

extension PairedBootstrap.Interval {
  var negated: Self { Self(lower: -upper, upper: -lower) }
}
