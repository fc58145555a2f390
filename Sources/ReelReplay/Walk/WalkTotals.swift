public import ReelPlayback

/// The figures of a whole walk.
///
/// Waits and hits are those of the swipes that count: the start of the walk, items that a burst passed by, and items
/// that failed before their first frame do not. A wait that was given up, because the person went on before the
/// frame came, counts with how long it lasted. Stalls are those of all items.
public struct WalkTotals: Sendable, Hashable {
  /// Swipes that count.
  public let countedSwipeCount: Int
  /// All of them, those of bursts included.
  public let swipeCount: Int
  /// Of the swipes that count, those that were left before their first frame was there.
  public let abandonedSwipeCount: Int
  /// From settling to the first frame.
  public let firstFrame: LatencyTable
  /// From settling to the second frame.
  public let secondFrame: LatencyTable
  /// How many of the swipes that count found each stage reached, or one beyond it.
  public let reachedCounts: [PreloadStage: Int]
  public let stallCount: Int
  public let stallDuration: Duration
  public let longestStall: Duration
  public let fetchedByteCount: Int64
  public let unshownByteCount: Int64
  public let decodedFrameCount: Int
  public let unshownFrameCount: Int
  /// The most memory that any slot ever took, in bytes; nil where it was not measured.
  public let slotHighWaterByteCount: Int?
  public let poolHighWaterByteCount: Int?
  public let failedItemCount: Int

  public init(_ report: WalkReport) {
    let counted = report.swipes.filter(\.isCounted)
    countedSwipeCount = counted.count
    swipeCount = report.swipes.filter { $0.kind != .start }.count
    abandonedSwipeCount = counted.filter { $0.timeToFirstFrame == nil }.count
    firstFrame = LatencyTable(counted, measured: \.timeToFirstFrame, counted: \.countedFirstFrame)
    secondFrame = LatencyTable(counted, measured: \.timeToSecondFrame, counted: \.countedSecondFrame)
    reachedCounts = Dictionary(
      uniqueKeysWithValues: PreloadStage.allCases.map { stage in
        (stage, counted.filter { $0.stage >= stage }.count)
      })
    stallCount = report.swipes.reduce(0) { $0 + $1.stallCount }
    stallDuration = report.swipes.reduce(.zero) { $0 + $1.stallDuration }
    longestStall = report.swipes.map(\.longestStall).max() ?? .zero
    fetchedByteCount = report.fetchedByteCount
    unshownByteCount = report.unshownByteCount
    decodedFrameCount = report.decodedFrameCount
    unshownFrameCount = report.unshownFrameCount
    slotHighWaterByteCount = report.slotHighWaterByteCounts.max()
    poolHighWaterByteCount = report.poolHighWaterByteCount
    failedItemCount = report.failedItems.count
  }

  /// The share of the swipes that count which found the stage reached, from 0 to 1; nil where none counts.
  public func hitRatio(_ stage: PreloadStage = .firstFrame) -> Double? {
    Self.share(reachedCounts[stage] ?? 0, of: countedSwipeCount)
  }

  /// The share of the fetched bytes that was never shown, from 0 to 1; nil where nothing was fetched.
  public var unshownByteShare: Double? { Self.share(unshownByteCount, of: fetchedByteCount) }

  /// The share of the decoded frames that was never shown, from 0 to 1; nil where none was decoded.
  public var unshownFrameShare: Double? { Self.share(unshownFrameCount, of: decodedFrameCount) }

  // MARK: - Private

  private static func share(_ part: some BinaryInteger, of whole: some BinaryInteger) -> Double? {
    whole > 0 ? Double(part) / Double(whole) : nil
  }
}
