import ReelCore
import ReelReplay

/// Warns of rungs that need more than the modelled link has.
enum LinkWarning {
  /// A sentence with the option that helps; nil if all rungs that were opened suit the link.
  ///
  /// - Parameters:
  ///   - bitsPerSecond: The rate of the link.
  ///   - adapts: True if the bit rate adapts already.
  static func text(_ reports: [WalkReport], bitsPerSecond: Int64, adapts: Bool) -> String? {
    let swipes = reports.flatMap(\.swipes).filter { Int64($0.rungBitRate ?? 0) > bitsPerSecond }
    guard let most = swipes.compactMap(\.rungBitRate).max() else { return nil }
    let count = Set(swipes.map(\.itemIndex)).count
    let items = count.counted("item plays", "items play")
    var text = "\(items) at up to \(rate(Double(most))), but the link has \(rate(Double(bitsPerSecond)))"
    // A fifth of the link is left for requests and for preloads.
    let suitable = max(1, bitsPerSecond * 4 / 5 / 1000)
    text += "; use --bandwidth \(suitable)k for a lower rung"
    if !adapts { text += " or --bandwidth auto to adapt to the throughput" }
    return text
  }

  private static func rate(_ bitsPerSecond: Double) -> String {
    bitsPerSecond >= 1e6
      ? "\((bitsPerSecond / 1e6).formatted(places: 2)) Mbit/s"
      : "\((bitsPerSecond / 1e3).formatted(places: 0)) kbit/s"
  }
}
