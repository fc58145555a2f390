internal import ReelCore
internal import ReelSimulation

/// Judges rungs by playing them over the links that a user named: `rung-too-heavy`.
enum PlaybackFindings {
  /// The rungs that were played over a link, by their index.
  struct Played {
    var link: CheckOptions.Link
    var rungs: [Int: PlayedRung]
  }

  /// - Parameters:
  ///   - played: For each link, the rungs of which one is played at a time.
  ///   - payer: The player.
  static func findings(
    _ played: [Played], _ payer: FindingCost.Player, _ thresholds: Thresholds
  ) -> [Finding] {
    let limit = thresholds[.rungTooHeavyStall]
    func isCarried(_ rung: PlayedRung) -> Bool { rung.stalledMilliseconds < limit }
    let links = played.filter { !$0.rungs.isEmpty }
    let barren = links.filter { !$0.rungs.values.contains(where: isCarried) }
    var findings: [Finding] = []
    if !barren.isEmpty {
      let lightest = barren.compactMap { place in
        place.rungs.values.min(by: isLighter).map { (place.link, $0) }
      }
      let isSeveral = links.contains { $0.rungs.count > 1 }
      findings += finding(
        "all", barren.count == links.count ? .error : .warning, lightest, payer,
        isSeveral ? "no rung plays on \(names(barren)); the lightest needs" : "it needs",
        fix: "add a rung that needs less, with its audio")
    }
    guard barren.count < links.count else { return findings }
    for rung in Set(links.flatMap(\.rungs.keys)).sorted() {
      let courses = links.compactMap { place in place.rungs[rung].map { (place.link, $0) } }
      guard courses.count == links.count, !courses.contains(where: { isCarried($0.1) }) else { continue }
      // The link that carries most of it.
      let best = courses.min { $0.1.stalledMilliseconds < $1.1.stalledMilliseconds }
      findings += finding(
        "rung", .warning, best.map { [$0] } ?? [], payer, "none of the links carries it: it needs",
        fix: "encode it for less, with its audio, or list it only for faster links")
    }
    return findings
  }

  // MARK: - Private

  private static func isLighter(_ left: PlayedRung, _ right: PlayedRung) -> Bool {
    (left.stalledMilliseconds, left.bitsPerSecond, left.rung)
      < (right.stalledMilliseconds, right.bitsPerSecond, right.rung)
  }

  private static func names(_ played: [Played]) -> String {
    played.map(\.link.name).joined(separator: " and ")
  }

  private static func finding(
    _ kind: String, _ level: FindingLevel, _ courses: [(CheckOptions.Link, PlayedRung)],
    _ payer: FindingCost.Player, _ words: String, fix: String
  ) -> [Finding] {
    guard let (link, rung) = courses.max(by: { $0.1.stalledMilliseconds < $1.1.stalledMilliseconds }) else {
      return []
    }
    let summary =
      "\(words) \(rate(rung.bitsPerSecond)) on average, and \(link.name) brings \(rate(Double(link.spec.bitsPerSecond))): \(rung.stallWords)"
    var found = Finding(.rungTooHeavy, kind, level, rung: rung.rung, summary, fix: fix)
    found.evidence = [
      ("bits_per_second", .number(rung.bitsPerSecond.rounded())),
      ("link_bits_per_second", .integer(link.spec.bitsPerSecond)),
      ("stalls", .integer(rung.course.stalls.count)),
      ("first_stall_s", .number(rung.course.stalls.first?.position ?? 0)),
      ("played_s", .number(rung.duration)),
    ]
    found.costs = courses.map { link, rung in
      FindingCost(.stall, rung.stalledMilliseconds.rounded(), link: link.name, player: payer)
    }
    return [found]
  }

  private static func rate(_ bitsPerSecond: Double) -> String {
    (try? BitRate(bitsPerSecond: Int64(bitsPerSecond.rounded()))).map { "\($0)" } ?? "\(bitsPerSecond) bit/s"
  }
}

extension PlayedRung {
  /// The stalls as a clause: `10 stalls in 24 s, the first after 0.6 s`.
  package var stallWords: String {
    guard let first = course.stalls.first else { return "no stall in \(duration.formatted(places: 1)) s" }
    let count = course.stalls.count
    let place = "after \(first.position.formatted(places: 1)) s"
    let end = course.isCut ? " at least" : ""
    return count == 1
      ? "1 stall\(end) in \(duration.formatted(places: 1)) s, \(place)"
      : "\(count) stalls\(end) in \(duration.formatted(places: 1)) s, the first \(place)"
  }
}
