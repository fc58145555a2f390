/// A modelled network link: its downlink rate and its round-trip time.
///
/// The text form is `RATE/RTT`, such as `10Mbit/50ms`, or the name of a profile: `3g`, `lte` or `wifi`. The rate is a
/// decimal number with an optional prefix (`k`, `M`, `G`) and unit (`bit`, `bit/s`, `bps`). The round-trip time is a
/// number with `us`, `ms` or `s`, at most an hour.
public struct LinkSpec: Sendable, Hashable {
  /// The downlink rate in bits per second; at least 1.
  public let bitsPerSecond: Int64
  /// The time from sending a request to receiving the first byte of its answer, without transmission time. Never
  /// negative.
  public let roundTripTime: Duration

  /// Creates a link.
  ///
  /// - Throws: `ReelError` of kind `usage` for a rate below 1 bit/s or a negative round-trip time.
  public init(bitsPerSecond: Int64, roundTripTime: Duration) throws(ReelError) {
    guard roundTripTime >= .zero else {
      throw ReelError(.usage, "a round-trip time can't be negative")
    }
    self.init(rate: try BitRate(bitsPerSecond: bitsPerSecond), roundTripTime: roundTripTime)
  }

  /// Parses a link such as `10Mbit/50ms`, or the name of a profile. Letter case does not matter.
  ///
  /// - Throws: `ReelError` of kind `usage` if `text` is neither.
  public init(parsing text: String) throws(ReelError) {
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
  public static let profiles: [(name: String, link: LinkSpec)] = [
    ("3g", .threeG), ("lte", .lte), ("wifi", .wifi),
  ]

  /// The profile `3g`: 1.6 Mbit/s, 300 ms.
  public static let threeG = LinkSpec(trustedRate: 1_600_000, roundTripTime: .milliseconds(300))
  /// The profile `lte`: 12 Mbit/s, 70 ms.
  public static let lte = LinkSpec(trustedRate: 12_000_000, roundTripTime: .milliseconds(70))
  /// The profile `wifi`: 30 Mbit/s, 10 ms.
  public static let wifi = LinkSpec(trustedRate: 30_000_000, roundTripTime: .milliseconds(10))

  // MARK: - Private

  private init(rate: BitRate, roundTripTime: Duration) {
    self.init(trustedRate: rate.bitsPerSecond, roundTripTime: roundTripTime)
  }

  private init(trustedRate: Int64, roundTripTime: Duration) {
    bitsPerSecond = trustedRate
    self.roundTripTime = roundTripTime
  }

  private static func duration(of text: Substring) -> Duration? {
    let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    let unit = text[number.endIndex...].trimmingSpaces().lowercased()
    let microseconds: [String: Double] = ["us": 1, "ms": 1e3, "s": 1e6]
    guard let value = Double(number), let size = microseconds[unit], value * size <= 3.6e9 else { return nil }
    return .microseconds(Int64((value * size).rounded()))
  }

  private static func malformed(_ text: String) -> ReelError {
    let names = profiles.map(\.name).joined(separator: ", ")
    return ReelError(
      .usage, "\"\(text)\" is no link",
      advice: "write it as 10Mbit/50ms (rate/round trip) or as one of \(names)")
  }
}

extension LinkSpec: CustomStringConvertible {
  /// Rate and round-trip time, such as `10 Mbit/s, 50 ms`.
  public var description: String {
    let rate = (try? BitRate(bitsPerSecond: bitsPerSecond))?.description ?? "\(bitsPerSecond) bit/s"
    let milliseconds = roundTripTime / .milliseconds(1)
    let time =
      milliseconds == milliseconds.rounded() ? String(Int64(milliseconds)) : String(milliseconds)
    return "\(rate), \(time) ms"
  }
}
