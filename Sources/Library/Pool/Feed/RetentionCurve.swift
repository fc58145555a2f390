public import ReelCore

/// How many viewers are still watching an item after each second.
///
/// The first share is that of second 0, the next one that of second 1, and so on; between two seconds the curve is a
/// straight line. No share is larger than the one before. A curve may continue past the end of the item, for viewers
/// who watch it again.
public struct RetentionCurve: Sendable, Hashable {
  /// The largest number of shares of a curve: 86,400, a day.
  public static let entryLimit = 86_400

  /// The share of viewers still watching at each second, from 0 to 1. Never empty.
  public let shares: [Double]

  /// A curve from its shares.
  ///
  /// - Throws: `ReelError` of kind `usage` for an empty array, more than `entryLimit` shares, a share outside 0...1, and
  ///   a share that is larger than the one before. The reason names the share by its index.
  public init(_ shares: [Double]) throws(ReelError) {
    if let fault = Self.fault(in: shares) {
      throw ReelError(.usage, fault.index.map { "share \($0) \(fault.reason)" } ?? fault.reason)
    }
    self.shares = shares
  }

  /// The time of the last share.
  public var duration: Duration { .seconds(shares.count - 1) }

  /// The share of viewers still watching at a time; before second 0 that of second 0, and after the last share the last
  /// share.
  public func share(at time: Duration) -> Double {
    let seconds = time / .seconds(1)
    guard seconds > 0 else { return shares[0] }
    guard seconds < Double(shares.count - 1) else { return shares[shares.count - 1] }
    let index = Int(seconds)
    return shares[index] + (shares[index + 1] - shares[index]) * (seconds - Double(index))
  }

  // MARK: - Internal

  /// A curve of shares in which `fault(in:)` finds nothing.
  init(checked shares: [Double]) { self.shares = shares }

  /// The first reason why `shares` are no curve, and the index of the faulty share if it is one; nil for a curve.
  static func fault(in shares: [Double]) -> (index: Int?, reason: String)? {
    if shares.isEmpty { return (nil, "should have at least one share") }
    if shares.count > entryLimit { return (nil, "has more than the limit of \(entryLimit) shares") }
    for (index, share) in shares.enumerated() {
      guard share >= 0, share <= 1 else { return (index, "must be from 0 to 1") }
      guard index == 0 || share <= shares[index - 1] else {
        return (index, "is larger than the share before")
      }
    }
    return nil
  }

  /// The first time at which the curve is at or below `share`, in seconds; nil if it stays above.
  ///
  /// The inverse of `share(at:)`. It is computed by operations that IEEE 754 rounds in one way only.
  package func seconds(fallingTo share: Double) -> Double? {
    guard let last = shares.last, last <= share else { return nil }
    // The first index whose share is not above the wanted one.
    var (low, high) = (0, shares.count - 1)
    while low < high {
      let middle = (low + high) / 2
      if shares[middle] <= share { high = middle } else { low = middle + 1 }
    }
    guard low > 0 else { return 0 }
    let above = shares[low - 1]
    return Double(low - 1) + (above - share) / (above - shares[low])
  }
}
