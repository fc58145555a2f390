public import ReelCore

/// A modelled network link: its downlink rate and its round-trip time.
///
/// The text form is `RATE/RTT`, such as `10Mbit/50ms`, or the name of a profile: `3g`, `lte` or `wifi`. The
/// rate is a decimal number with an optional prefix (`k`, `M`, `G`) and unit (`bit`, `bit/s`, `bps`). The
/// round-trip time is a number with `us`, `ms` or `s`, at most an hour. Options may follow, each behind a
/// comma: `10Mbit/50ms,tcp,jitter=10ms`.
///
/// | option | meaning |
/// |---|---|
/// | `scale=4` | multiplies the rate |
/// | `rtt=50ms` | sets the round-trip time |
/// | `jitter=10ms` | each round trip takes up to that much longer |
/// | `tcp` | connections have a congestion window: an initial one of 10 segments, and slow start |
/// | `tls` | the certificates of a new `https` connection cross the link |
/// | `dns` | the first connection to a host name takes one more round trip |
/// | `ideal` | none of these three, except for those that are named; what a link is without options |
/// | `start=30s`, `start=seed` | where a recorded link begins; without effect for a constant rate |
public struct LinkSpec: Sendable, Hashable {
  /// The downlink rate in bits per second; at least 1. If the rate is recorded, its mean.
  package private(set) var bitsPerSecond: Int64
  /// The time from sending a request to receiving the first byte of its answer, without transmission time. Never
  /// negative.
  package var roundTripTime: Duration
  /// The recorded rate; nil for a constant one.
  package private(set) var recording: LinkRecording?
  /// The place in the recording at which the link begins.
  package var start = Duration.zero
  /// True if the start is still to be drawn.
  package var drawsStart = false
  /// The maximum by which a round trip is longer than `roundTripTime`.
  package var jitter = Duration.zero
  /// The seed of the jitter.
  package var seed: UInt64 = 0
  /// What the link models of connections.
  package var features: LinkFeatures = []

  /// The round-trip time of a recorded link whose argument states none.
  package static let recordedRoundTripTime = Duration.milliseconds(50)

  /// Creates a link.
  ///
  /// - Throws: `ReelError` of kind `usage` for a rate below 1 bit/s or a negative round-trip time.
  public init(bitsPerSecond: Int64, roundTripTime: Duration) throws(ReelError) {
    guard roundTripTime >= .zero else {
      throw ReelError(.usage, "a round-trip time can't be negative")
    }
    self.init(rate: try BitRate(bitsPerSecond: bitsPerSecond), roundTripTime: roundTripTime)
  }

  package init(_ recording: LinkRecording, roundTripTime: Duration = Self.recordedRoundTripTime) {
    self.init(trustedRate: recording.meanBitsPerSecond, roundTripTime: roundTripTime)
    self.recording = recording
  }

  /// Parses a link such as `10Mbit/50ms` or the name of a profile, with options. Letter case does not matter.
  ///
  /// - Throws: `ReelError` of kind `usage` if `text` is neither, or an option is unknown or makes no sense.
  public init(parsing text: String) throws(ReelError) {
    let parts = text.split(separator: ",", omittingEmptySubsequences: false)
    let link = try LinkSpec(parsingWithoutOptions: parts.first.map(String.init) ?? "")
    self = try LinkOptions(parsing: Array(parts.dropFirst())).applied(to: link)
  }

  /// Parses a rate and a round-trip time, or the name of a profile.
  package init(parsingWithoutOptions text: String) throws(ReelError) {
    let trimmed = text.trimmingSpaces()
    if let profile = Self.profiles.first(where: { $0.name == trimmed.lowercased() }) {
      self = profile.link
      return
    }
    // The last slash is the separator: the rate may contain one, as in `10Mbit/s/50ms`.
    guard let slash = trimmed.lastIndex(of: "/") else { throw Self.malformed(text) }
    let rate = try BitRate(parsing: String(trimmed[..<slash]))
    guard let roundTrip = Self.duration(of: trimmed[trimmed.index(after: slash)...].trimmingSpaces()) else {
      throw Self.malformed(text)
    }
    self.init(rate: rate, roundTripTime: roundTrip)
  }

  /// The named profiles, slowest first.
  package static let profiles: [(name: String, link: LinkSpec)] = [
    ("3g", .threeG), ("lte", .lte), ("wifi", .wifi),
  ]

  /// The profile `3g`: 1.6 Mbit/s, 300 ms.
  public static let threeG = LinkSpec(trustedRate: 1_600_000, roundTripTime: .milliseconds(300))
  /// The profile `lte`: 12 Mbit/s, 70 ms.
  public static let lte = LinkSpec(trustedRate: 12_000_000, roundTripTime: .milliseconds(70))
  /// The profile `wifi`: 30 Mbit/s, 10 ms.
  public static let wifi = LinkSpec(trustedRate: 30_000_000, roundTripTime: .milliseconds(10))

  /// Returns the link with its rate multiplied by `factor`, rounded to 1 bit/s.
  ///
  /// - Throws: `ReelError` if the rate is not between 1 bit/s and 10,000 Gbit/s, or all rates of a recording
  ///   are 0.
  package func scaled(by factor: Double) throws(ReelError) -> LinkSpec {
    var scaled = self
    if let recording {
      let recording = try recording.scaled(by: factor)
      scaled.recording = recording
      scaled.bitsPerSecond = recording.meanBitsPerSecond
    } else {
      let rate = (Double(bitsPerSecond) * factor).rounded()
      guard rate >= 1, rate <= Double(LinkRecording.largestRate) else {
        throw ReelError(.usage, "the scaled rate of the link is not between 1 bit/s and 10,000 Gbit/s")
      }
      scaled.bitsPerSecond = Int64(rate)
    }
    return scaled
  }

  /// Reads a time with its unit, such as `250us`, `50ms` or `2s`; at most an hour.
  static func duration(of text: Substring) -> Duration? { duration(of: text, limit: 3600) }

  /// Reads a place in a recording: seconds, or a time with its unit, such as `90`, `90s` or `1:30`.
  static func place(of text: Substring) -> Duration? {
    let limit = Double(LinkRecording.longestPeriod.components.seconds)
    return duration(of: text, isPlace: true, limit: limit)
  }

  // MARK: - Private

  private init(rate: BitRate, roundTripTime: Duration) {
    self.init(trustedRate: rate.bitsPerSecond, roundTripTime: roundTripTime)
  }

  private init(trustedRate: Int64, roundTripTime: Duration) {
    bitsPerSecond = trustedRate
    self.roundTripTime = roundTripTime
  }

  private static func duration(of text: Substring, isPlace: Bool = false, limit: Double) -> Duration? {
    guard let seconds = TimeText.seconds(text, needsUnit: !isPlace), seconds >= 0, seconds <= limit else {
      return nil
    }
    return .microseconds(Int64((seconds * 1e6).rounded()))
  }

  private static func malformed(_ text: String) -> ReelError {
    let names = profiles.map(\.name).joined(separator: ", ")
    return ReelError(
      .usage, "\"\(text)\" is not a link",
      advice: "write 10Mbit/50ms (rate/round-trip time), \(names), or the path of a recording")
  }
}

/// What a link models of connections, besides its rate and its round trips.
package struct LinkFeatures: OptionSet, Sendable, Hashable {
  package let rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// A congestion window, with slow start.
  package static let tcp = LinkFeatures(rawValue: 1)
  /// The certificates of `https`, which cross the link.
  package static let tls = LinkFeatures(rawValue: 2)
  /// Host names, which are looked up.
  package static let dns = LinkFeatures(rawValue: 4)
  package static let all: LinkFeatures = [.tcp, .tls, .dns]

  /// The features with their names as options, in the order in which they are written.
  private static let names: [(name: String, words: String, feature: LinkFeatures)] = [
    ("tcp", "slow start", .tcp), ("tls", "TLS", .tls), ("dns", "DNS", .dns),
  ]

  init?(name: String) {
    guard let feature = Self.names.first(where: { $0.name == name })?.feature else { return nil }
    self = feature
  }

  /// The names as options: `tcp`, `tls`, `dns`.
  package var optionNames: [String] { Self.names.filter { contains($0.feature) }.map(\.name) }

  /// In words: `slow start, TLS, DNS`; `ideal` for none.
  package var words: String {
    isEmpty ? "ideal" : Self.names.filter { contains($0.feature) }.map(\.words).joined(separator: ", ")
  }
}

extension LinkSpec {
  /// What the link models, in words: `slow start, TLS, DNS`, or `ideal`.
  package var modelledWords: String { features.words }
}

extension LinkSpec: CustomStringConvertible {
  /// Rate and round-trip time, such as `10 Mbit/s, 50 ms`; of a recording, its mean rate and period too.
  public var description: String {
    let rate = (try? BitRate(bitsPerSecond: bitsPerSecond))?.description ?? "\(bitsPerSecond) bit/s"
    let milliseconds = roundTripTime / .milliseconds(1)
    let time =
      milliseconds == milliseconds.rounded() ? String(Int64(milliseconds)) : String(milliseconds)
    guard let recording else { return "\(rate), \(time) ms" }
    let period = (recording.period.milliseconds / 1e3).formatted(places: 1)
    return "\(rate) on average over \(period) s, \(time) ms"
  }
}

/// The options of a link as a user writes them, each after a comma: `start=30s`, `scale=4`, `rtt=50ms`,
/// `jitter=10ms`, `ideal`, `tcp`, `tls` and `dns`. `LinkModel` describes their effects.
package struct LinkOptions: Sendable, Hashable {
  private enum Start: Sendable, Hashable {
    case at(Duration)
    /// At a position that is drawn from a seed.
    case drawn
  }

  private var start: Start?
  private var scale: Double?
  private var roundTripTime: Duration?
  private var jitter: Duration?
  private var isIdeal = false
  /// The features that are named.
  private var named: LinkFeatures = []
  /// The features of a link that is not ideal.
  private let usual: LinkFeatures

  /// The forms with their meanings, in the order of the help text.
  package static let forms: [(form: String, meaning: String)] = [
    ("start=30s", "start at this place of a recording; start=seed draws the place from --seed"),
    ("scale=4", "multiply all rates by this"),
    ("rtt=50ms", "the round-trip time; for a recording, 50 ms unless given"),
    ("jitter=10ms", "add up to this much to each round trip, drawn from --seed"),
    ("ideal", "leave out tcp, tls and dns, except for those that are named"),
    ("tcp", "a congestion window: 10 segments, then slow start, also after a pause"),
    ("tls", "the transfer of certificates on each new https connection"),
    ("dns", "a round trip more for the first connection to each host name"),
  ]

  /// - Parameter usual: The features of a link that is not ideal, whether or not they are named.
  /// - Throws: `ReelError` of kind `usage` for an unknown option, a value that makes no sense, or a repeated
  ///   option.
  package init(
    parsing options: [some StringProtocol], unlessIdeal usual: LinkFeatures = []
  ) throws(ReelError) {
    self.usual = usual
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

  /// Returns the link with these options.
  ///
  /// - Throws: `ReelError` of kind `usage` if the scaled rate is out of range, or `badManifest` if the rate
  ///   is recorded.
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
    link.features = isIdeal ? named : named.union(usual)
    return link
  }

  // MARK: - Private

  /// Returns false if the option was set before, and nil if it is unknown or its value is invalid.
  private mutating func set(_ name: String, to value: Substring?) -> Bool? {
    guard let value else {
      if name == "ideal" {
        defer { isIdeal = true }
        return !isIdeal
      }
      return LinkFeatures(name: name).map { named.insert($0).inserted }
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

/// The bottleneck of a modelled link: parcels of one packet's size cross it one after the other, in turns
/// among the transfers that may send.
///
/// A pure value. It computes all times from earlier times, so a late call changes nothing.
package struct LinkBottleneck: Sendable {
  /// The payload of a full TCP segment on Ethernet.
  package static let parcelByteCount = 1448

  /// The time at which the link has carried everything that was put on it.
  package private(set) var freeAt = Duration.zero

  private let bitsPerSecond: Int64
  /// Nil if the rate never changes.
  private var position: LinkRecordingPosition?
  /// The index of the transfer whose turn is next.
  private var turn = 0
  /// How long the last parcel took: the next one mostly has its size.
  private var last = (byteCount: 0, duration: Duration.zero)

  package init(bitsPerSecond: Int64) { self.bitsPerSecond = bitsPerSecond }

  /// The bottleneck of a link; a recorded one is at the link's start when the clock shows `zero`.
  package init(_ link: LinkSpec, zero: Duration = .zero) {
    bitsPerSecond = link.bitsPerSecond
    freeAt = zero
    position = link.recording.map { LinkRecordingPosition($0, start: link.start, zero: zero) }
  }

  /// Returns how long `count` bytes take if nothing else is on the link; for a recorded link, at its mean
  /// rate.
  package func duration(ofByteCount count: Int) -> Duration {
    .seconds(8 * Int64(count)) / bitsPerSecond
  }

  /// Puts a parcel on the link at `start`, or when the link is free if that is later. Returns when it has
  /// crossed.
  package mutating func put(_ byteCount: Int, at start: Duration) -> Duration {
    let begin = max(freeAt, start)
    if let end = position?.end(ofBits: 8 * Int64(byteCount), from: begin) {
      freeAt = end
      return freeAt
    }
    if last.byteCount != byteCount { last = (byteCount, duration(ofByteCount: byteCount)) }
    freeAt = begin + last.duration
    return freeAt
  }

  /// Returns the index of the next transfer among `count` that may send. Its next turn comes after the
  /// others'.
  package mutating func takeTurn(among count: Int, where maySend: (Int) -> Bool) -> Int? {
    for step in 0..<count {
      let index = (turn + step) % count
      guard maySend(index) else { continue }
      turn = index + 1
      return index
    }
    return nil
  }

  /// Keeps the order of turns when a transfer has been removed and the later ones have moved up.
  package mutating func remove(at index: Int) {
    if index < turn { turn -= 1 }
  }
}
