package import ReelPlayback

/// The figures of a whole walk.
///
/// Waits and hits cover the swipes that count (``SwipeRecord/isCounted``): not the start of the walk, items passed by
/// in a burst, and items that failed before their first frame. A wait that the viewer gave up counts with its duration
/// until then. Stalls, watched time and rungs cover all items.
package struct WalkTotals: Sendable, Hashable {
  /// The number of swipes that count.
  package let countedSwipeCount: Int
  /// The number of all swipes, including those within bursts.
  package let swipeCount: Int
  /// The number of swipes that count whose item was left before its first frame.
  package let abandonedSwipeCount: Int
  /// The waits from the settle to the first frame.
  package let firstFrame: LatencyTable
  /// The waits from the settle to the second frame.
  package let secondFrame: LatencyTable
  /// The sums of what the swipes that count waited for, by purpose: `manifest`, `initialization`, `answer`, `transfer`,
  /// `decode`, `preparing` until the first frame, and `second_frame` from there on.
  let waits: [String: Duration]
  /// For each stage, the number of swipes that count which found it or a later one reached.
  package let reachedCounts: [PreloadStage: Int]
  /// The number of stalls.
  package let stallCount: Int
  /// The total duration of the stalls.
  package let stallDuration: Duration
  /// The duration of the longest stall.
  package let longestStall: Duration
  /// The time for which items were looked at, from their first frames until they were left, including stalls.
  package let watchedDuration: Duration
  /// The mean of the stated bit rates of the shown frames, weighted by their media time, in bits per second;
  /// `nil` if no frame of a rung with a stated bit rate was shown.
  package let meanBitRate: Double?
  /// The number of times that another rung of the same item was shown while the item was looked at.
  package let rungSwitchCount: Int
  /// The bytes fetched for all items.
  package let fetchedByteCount: Int64
  /// The fetched bytes that were never shown.
  package let unshownByteCount: Int64
  /// The frames decoded for all items; `nil` for a modelled player, which decodes none.
  package let decodedFrameCount: Int?
  /// The decoded frames that were never shown.
  package let unshownFrameCount: Int
  /// The peak memory of the slot that held the most, in bytes; `nil` if it was not measured.
  package let slotHighWaterByteCount: Int?
  /// The peak memory of all slots together, in bytes; `nil` if it was not measured.
  package let poolHighWaterByteCount: Int?
  /// The number of items that failed.
  package let failedItemCount: Int

  /// Computes the figures of a report.
  package init(_ report: WalkReport) {
    let counted = report.swipes.filter(\.isCounted)
    countedSwipeCount = counted.count
    swipeCount = report.swipes.filter { $0.kind != .start }.count
    abandonedSwipeCount = counted.filter { $0.timeToFirstFrame == nil }.count
    firstFrame = LatencyTable(counted, measured: \.timeToFirstFrame, counted: \.countedFirstFrame)
    secondFrame = LatencyTable(counted, measured: \.timeToSecondFrame, counted: \.countedSecondFrame)
    var waits: [String: Duration] = [:]
    for swipe in counted {
      for part in swipe.waitParts { waits[Self.purpose(of: part.stage), default: .zero] += part.duration }
      guard let first = swipe.countedFirstFrame, let second = swipe.countedSecondFrame else { continue }
      waits["second_frame", default: .zero] += max(second - first, .zero)
    }
    self.waits = waits
    reachedCounts = Dictionary(
      uniqueKeysWithValues: PreloadStage.allCases.map { stage in
        (stage, counted.filter { $0.stage >= stage }.count)
      })
    stallCount = report.swipes.reduce(0) { $0 + $1.stallCount }
    stallDuration = report.swipes.reduce(.zero) { $0 + $1.stallDuration }
    longestStall = report.swipes.map(\.longestStall).max() ?? .zero
    watchedDuration = report.swipes.reduce(.zero) { sum, swipe in
      sum + (swipe.timeToFirstFrame.map { max(.zero, swipe.watched - $0) } ?? .zero)
    }
    let rated = report.swipes.flatMap(\.rungs).compactMap { rung in
      rung.bitRate.map { (bitRate: $0, duration: rung.duration) }
    }
    let seconds = rated.reduce(Duration.zero) { $0 + $1.duration } / .seconds(1)
    let bits = rated.reduce(0) { $0 + Double($1.bitRate) * ($1.duration / .seconds(1)) }
    meanBitRate = seconds > 0 ? bits / seconds : nil
    rungSwitchCount = report.swipes.reduce(0) { $0 + $1.rungSwitchCount }
    fetchedByteCount = report.fetchedByteCount
    unshownByteCount = report.unshownByteCount
    decodedFrameCount = report.settings.player == nil ? report.decodedFrameCount : nil
    unshownFrameCount = report.unshownFrameCount
    slotHighWaterByteCount = report.slotHighWaterByteCounts.max()
    poolHighWaterByteCount = report.poolHighWaterByteCount
    failedItemCount = report.failedItems.count
  }

  /// Returns the share of counted swipes that found the stage reached, from 0 to 1; `nil` if no swipe was
  /// counted.
  package func hitRatio(_ stage: PreloadStage = .firstFrame) -> Double? {
    countedSwipeCount > 0 ? Double(reachedCounts[stage] ?? 0) / Double(countedSwipeCount) : nil
  }

  /// The time of all stalls as a share of ``watchedDuration``; `nil` if nothing was watched.
  package var rebufferingRatio: Double? {
    watchedDuration > .zero ? stallDuration / watchedDuration : nil
  }

  // MARK: - Private

  /// The name of a wait in the figures, for the name that `WaitRecorder` uses.
  private static func purpose(of wait: String) -> String {
    switch wait.prefix(while: { $0 != " " }) {
    case "source", "manifest", "key", "clock": "manifest"
    case "initialization": "initialization"
    case "segment", "resource": wait.hasSuffix("transfer") ? "transfer" : "answer"
    case "decode", "show": "decode"
    default: "preparing"
    }
  }
}
