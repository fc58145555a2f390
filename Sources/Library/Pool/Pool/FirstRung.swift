/// The rung of an item's first segment in a pool.
///
/// A lower rung has a smaller first frame, which comes earlier on a slow link. From the second segment on, the rung is
/// chosen as if this choice had not been made.
public enum FirstRung: String, Sendable, Hashable, CaseIterable {
  /// The rung that the player would choose for any segment.
  case adapted
  /// The lowest rung.
  case low
  /// A rung that the measured throughput carries in time.
  ///
  /// For an item that the viewer waits for, that is the highest rung of which 0.5 s of media, with which playback starts
  /// (`BufferingThresholds.start`), come within 100 ms. For a preload it is the highest rung that comes as fast as it
  /// plays. Both go by the throughput that is exceeded five times of six. As long as nothing was measured, an item that
  /// the viewer waits for starts with the lowest rung.
  case auto

  /// The time after a swipe within which a viewer does not notice a wait.
  private static let unnoticedWait = Duration.milliseconds(100)

  /// The limit for the rung of a first segment, in bits per second; nil for none. 1 stands for the lowest rung.
  ///
  /// - Parameters:
  ///   - isAwaited: True for the current item.
  ///   - start: The media with which playback starts.
  package func peakBitRate(isAwaited: Bool, throughput: ThroughputEstimate?, start: Duration) -> Int? {
    switch self {
    case .adapted: return nil
    case .low: return 1
    case .auto:
      guard let rate = throughput?.rate(atDeviations: -1) else { return isAwaited ? 1 : nil }
      guard isAwaited, start > .zero else { return max(Int(clamping: rate), 1) }
      return max(Int(clamping: rate * (Self.unnoticedWait / start)), 1)
    }
  }
}
