internal import ReelCore

/// Finds the slots of a source read forward whose key frames were lost, by the key frames around them.
///
/// A slot without a key frame of its own is no loss: key frames may be further apart than the slots. So the longest
/// distance between key frames where nothing was lost tells where others would have been.
struct StoryboardGaps: Sendable {
  private let plan: StoryboardPlan
  /// In seconds; nil before the second key frame.
  private var longestDistance: Double?
  private var last: MediaTime?
  /// A longer gap than this many times the longest distance has lost a key frame.
  private static let lossRatio = 1.5

  init(_ plan: StoryboardPlan) { self.plan = plan }

  /// The slots between two others whose key frames were lost.
  ///
  /// - Parameters:
  ///   - times: The packets named key frames since the last call, from the start of the storyboard; at the end of the
  ///     source, also that end.
  ///   - hasFailed: Some of these packets could not be decoded.
  ///   - hasDamage: The container was damaged meanwhile, so packets may be missing.
  mutating func slots(
    of times: [MediaTime], between lastSlot: Int, and slot: Int, hasFailed: Bool, hasDamage: Bool
  ) -> [Int] {
    var lost: Set<Int> = []
    if hasFailed { lost.formUnion(times.compactMap { plan.slot(at: $0, after: lastSlot) }) }
    for time in times {
      if let last, time > last {
        // A packet that can't be decoded may have lost its mark as a key frame, too.
        if !hasDamage, !hasFailed {
          longestDistance = max(longestDistance ?? 0, (time - last).seconds)
        } else if let longestDistance, (time - last).seconds > longestDistance * Self.lossRatio {
          lost.formUnion(slots(from: last, to: time.seconds - longestDistance / 2, after: lastSlot))
        }
      }
      last = max(last ?? time, time)
    }
    return lost.filter { $0 > lastSlot && $0 < slot }.sorted()
  }

  /// The slots whose key frames are missing because the source ends too early; none if its duration is not known.
  ///
  /// - Parameter end: The end of what was read, from the start of the storyboard.
  func slots(after lastSlot: Int, behind end: MediaTime?) -> [Int] {
    guard let duration = plan.duration else { return [] }
    let lost = slots(from: last ?? .zero, to: Double(duration) / 1000, behind: end, after: lastSlot)
    return lost.filter { $0 > lastSlot }.sorted()
  }

  // MARK: - Private

  /// The slots of the key frames that would be expected after one at `start`, before `end` in seconds.
  private func slots(
    from start: MediaTime, to end: Double, behind least: MediaTime? = nil, after lastSlot: Int
  ) -> Set<Int> {
    let step = max(longestDistance ?? 0, Double(plan.interval) / 1000)
    var slots: Set<Int> = []
    var time = start.seconds + step
    while time < end, let slot = plan.slot(at: MediaTime(seconds: time), after: lastSlot),
      slot < plan.slotCount ?? .max
    {
      if time >= least?.seconds ?? 0 { slots.insert(slot) }
      time += step
    }
    return slots
  }
}
