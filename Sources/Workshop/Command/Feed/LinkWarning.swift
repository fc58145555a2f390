import ReelCore
import ReelLab

/// Warns of rungs that exceed the rate of the modelled link.
enum LinkWarning {
  /// Returns a sentence with the option that helps; nil if the link suffices for all rungs that were opened.
  ///
  /// - Parameters:
  ///   - bitsPerSecond: The rate of the link.
  ///   - adapts: True if the bit rate adapts already.
  static func text(_ reports: [WalkReport], bitsPerSecond: Int64, adapts: Bool) -> String? {
    let swipes = reports.flatMap(\.swipes).filter { Int64($0.rungBitRate ?? 0) > bitsPerSecond }
    guard let most = swipes.compactMap(\.rungBitRate).max() else { return nil }
    let count = Set(swipes.map(\.itemIndex)).count
    let items = count.counted("item plays", "items play")
    let (rate, linkRate) = (Double(most), Double(bitsPerSecond))
    var text =
      "\(items) at up to \(WalkValue.text(bitsPerSecond: rate)), but the link has "
      + WalkValue.text(bitsPerSecond: linkRate)
    // A fifth of the link is reserved for requests and preloads.
    let suitable = max(1, bitsPerSecond * 4 / 5 / 1000)
    text += "; use --bandwidth \(suitable)k for a lower rung"
    if !adapts { text += " or --bandwidth auto to adapt to the throughput" }
    return text
  }
}
