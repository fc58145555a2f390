public import ReelCore
internal import ReelPool

/// How often a viewer flicks on at once, goes back, or swipes several times in a row: shares of the steps of a walk.
public struct SwipeShares: Sendable, Hashable {
  /// The share of steps that leave the item after a fraction of a second (``WalkPlan/flickDwells``) instead of its
  /// dwell time. Defaults to 0.
  public let flicks: Double
  /// The share that goes back by one item, of the steps that are no bursts. Defaults to 0.15.
  public let back: Double
  /// The share of steps that are bursts of quick swipes. Defaults to 0.05.
  public let bursts: Double

  /// The shares of a walk that states none.
  public static let usual = SwipeShares()

  /// Shares from 0 to 1, rounded to a millionth.
  ///
  /// - Throws: `ReelError` of kind `usage` for a share outside 0...1.
  public init(flicks: Double = 0, back: Double = 0.15, bursts: Double = 0.05) throws(ReelError) {
    for (name, share) in [("flicks", flicks), ("back", back), ("bursts", bursts)]
    where !(share >= 0 && share <= 1) {
      throw ReelError(.usage, "the share of \(name) must be from 0 to 1")
    }
    self.flicks = Self.rounded(flicks)
    self.back = Self.rounded(back)
    self.bursts = Self.rounded(bursts)
  }

  /// The share that `text` means: a number from 0 to 100 with `%`.
  ///
  /// - Throws: `ReelError` of kind `usage`, which names the share.
  public static func share(parsing text: String, of name: String) throws(ReelError) -> Double {
    guard let (percent, unit) = Quantity.split(text), unit == "%", percent <= 100 else {
      throw ReelError(
        .usage, "\(name): \"\(text)\" is not a share", advice: "write it in percent, from 0% to 100%")
    }
    return rounded(percent / 100)
  }

  // MARK: - Internal

  /// True for this share of all random numbers. A larger share includes the numbers of a smaller one, and whole percents
  /// depend only on the number modulo 100.
  static func holds(_ share: Double, for random: UInt64) -> Bool {
    let millionths = random % 100 * 10_000 + random / 100 % 10_000
    return millionths < UInt64((share * 1e6).rounded())
  }

  // MARK: - Private

  private init() { (flicks, back, bursts) = (0, 0.15, 0.05) }

  private static func rounded(_ share: Double) -> Double { (share * 1e6).rounded() / 1e6 }
}

extension SwipeShares: CustomStringConvertible {
  /// The shares that differ from the usual ones: `flicks=20%,back=10%`. Empty if none does.
  public var description: String {
    let usual = Self.usual
    let all = [
      ("flicks", flicks, usual.flicks), ("back", back, usual.back), ("bursts", bursts, usual.bursts),
    ]
    return all.filter { $0.1 != $0.2 }.map { "\($0.0)=\(($0.1 * 100).formatted(places: 4))%" }
      .joined(separator: ",")
  }
}

extension SwipeShares: Codable {
  private enum CodingKeys: String, CodingKey {
    case flicks, back, bursts
  }

  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    let shares = try [CodingKeys.flicks, .back, .bursts].map { try values.decode(Double.self, forKey: $0) }
    do {
      try self.init(flicks: shares[0], back: shares[1], bursts: shares[2])
    } catch {
      throw DecodingError.dataCorrupted(
        DecodingError.Context(codingPath: decoder.codingPath, debugDescription: error.reason))
    }
  }
}
