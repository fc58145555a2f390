/// The options of a link as a user writes them, behind a comma each: `start=30s`, `scale=4`, `rtt=50ms`, `jitter=10ms`,
/// `tcp`, `tls` and `dns`. `LinkModel` says what they do.
package struct LinkOptions: Sendable, Hashable {
  private enum Start: Sendable, Hashable {
    case at(Duration)
    /// At a place that is drawn from a seed.
    case drawn
  }

  private var start: Start?
  private var scale: Double?
  private var roundTripTime: Duration?
  private var jitter: Duration?
  private var switches: Set<String> = []

  /// The forms with their meanings, in the order of the help text.
  package static let forms: [(form: String, meaning: String)] = [
    ("start=30s", "start at this place of a recording; start=seed draws the place from --seed"),
    ("scale=4", "multiply all rates by this"),
    ("rtt=50ms", "the round-trip time; for a recording, 50 ms unless given"),
    ("jitter=10ms", "add up to this much to each round trip, drawn from --seed"),
    ("tcp", "model a congestion window: 10 segments, then slow start, also after a pause"),
    ("tls", "model the transfer of certificates on each new https connection"),
    ("dns", "add a round trip to the first connection to each host name"),
  ]

  /// - Throws: `ReelError` of kind `usage` for an unknown option, a value that makes no sense, or an option that is
  ///   there twice.
  package init(parsing options: [some StringProtocol]) throws(ReelError) {
    for option in options {
      let parts = option.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        .map { String($0).trimmingSpaces() }
      let name = parts.first?.lowercased() ?? ""
      let value = parts.count > 1 ? parts[1] : nil
      guard let isNew = set(name, to: value) else {
        let names = Self.forms.map(\.form).joined(separator: ", ")
        throw ReelError(
          .usage, "\"\(option)\" is not a link option", advice: "the options are \(names)")
      }
      guard isNew else { throw ReelError(.usage, "the link option \(name) is given twice") }
    }
  }

  /// True if the start is drawn from a seed.
  package var drawsStart: Bool { start == .drawn }

  /// The link with these options.
  ///
  /// - Throws: `ReelError` of kind `usage` if the scaled rate is out of range; `badManifest` if it is that of a recording.
  package func applied(to link: LinkSpec) throws(ReelError) -> LinkSpec {
    var link = link
    if let scale { link = try link.scaled(by: scale) }
    if let roundTripTime { link.roundTripTime = roundTripTime }
    switch start {
    case .at(let time): link.start = time
    case .drawn: link.drawsStart = true
    case nil: break
    }
    link.jitter = jitter ?? .zero
    link.modelsTCP = switches.contains("tcp")
    link.modelsTLS = switches.contains("tls")
    link.modelsDNS = switches.contains("dns")
    return link
  }

  // MARK: - Private

  /// False where the option was set before; nil for no option, or no value of one.
  private mutating func set(_ name: String, to value: Substring?) -> Bool? {
    guard let value else {
      guard ["tcp", "tls", "dns"].contains(name) else { return nil }
      return switches.insert(name).inserted
    }
    switch name {
    case "start":
      guard value.lowercased() != "seed" else { return Self.set(&start, to: .drawn) }
      guard let time = LinkSpec.place(of: value) else { return nil }
      return Self.set(&start, to: .at(time))
    case "scale":
      guard value.allSatisfy({ $0.isASCII && ($0.isNumber || $0 == ".") }), let factor = Double(value),
        factor >= 1e-6, factor <= 1e6
      else { return nil }
      return Self.set(&scale, to: factor)
    case "rtt":
      guard let time = LinkSpec.duration(of: value) else { return nil }
      return Self.set(&roundTripTime, to: time)
    case "jitter":
      guard let time = LinkSpec.duration(of: value) else { return nil }
      return Self.set(&jitter, to: time)
    default: return nil
    }
  }

  private static func set<Value>(_ place: inout Value?, to value: Value) -> Bool {
    defer { place = value }
    return place == nil
  }
}
