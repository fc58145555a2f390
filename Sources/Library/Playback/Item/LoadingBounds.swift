/// Limits on what a player loads of an item that it plays.
///
/// A pool sets them for its current item, besides the item's own preferences (``PlayerItem/Preferences``). Changes apply
/// while the item loads, and nothing is fetched twice for them.
public struct LoadingBounds: Sendable, Hashable {
  /// The compressed media to load ahead of the frame on show. If nil, the item's preference applies.
  ///
  /// If it is shorter than ``BufferingThresholds/start``, playback starts with so much.
  public var forwardBufferDuration: Duration?
  /// The highest bit rate to choose, in bits per second. The lower one of this and the item's preference applies. If all
  /// rungs are above it, the lowest one plays. If nil, there is no such limit.
  public var peakBitRate: Int?
  /// The highest bit rate of the rung of the first segment, in bits per second. The rung of the second segment is
  /// chosen without it. If nil, there is no such limit.
  public var startPeakBitRate: Int?

  /// Creates bounds; by default, none.
  public init(
    forwardBufferDuration: Duration? = nil, peakBitRate: Int? = nil, startPeakBitRate: Int? = nil
  ) {
    self.forwardBufferDuration = forwardBufferDuration
    self.peakBitRate = peakBitRate
    self.startPeakBitRate = startPeakBitRate
  }
}
