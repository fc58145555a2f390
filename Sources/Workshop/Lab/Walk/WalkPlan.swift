package import ReelCore
package import ReelPool
internal import ReelSimulation

/// The swipes and dwell times of a walk through a feed, complete before the walk begins.
///
/// The plan depends only on its parameters: equal parameters give the same plan on every machine, regardless
/// of the pool.
///
/// The walk begins at item 0. Each step goes to the next item in the direction of travel, which turns round
/// at the ends of the feed. A share of the steps (``SwipeShares/bursts``, 5 % unless stated) are bursts of 3
/// to 8 quick swipes, 80 ms apart, or fewer if the feed ends before; of the others a share
/// (``SwipeShares/back``, 15 % unless stated) goes back by one item. The look at the last item is no step.
///
/// Directions and dwell times come from two separate random sequences. Therefore, walks with the same seed visit the
/// same items regardless of the dwell times.
///
/// A trace also determines the targets of the swipes. It starts over if it is shorter than the walk. A target
/// outside the feed is an error; only lines without a target reverse the direction at the ends. A move to the
/// current item prolongs the look at it.
package struct WalkPlan: Sendable, Hashable {
  /// The time between the swipes of a burst: 80 ms.
  package static let burstInterval = Duration.milliseconds(80)
  /// The numbers of swipes that a burst can have.
  package static let burstLengths = 3...8
  /// The longest time from the end of a drag to the settle: 10 s.
  package static let settleLimit = Duration.seconds(10)
  /// The largest number of swipes of a plan: 10,000,000.
  package static let swipeLimit = 10_000_000

  /// The number of items in the feed.
  package let itemCount: Int
  /// The seed of the random sequences.
  package let seed: UInt64
  /// The time from the end of a drag, when the surface moves to the next item's player, to the settle, when the item may
  /// play and the wait begins.
  package let settle: Duration
  /// The steps in order; empty for a feed with one item.
  package let steps: [WalkStep]
  /// The dwell time of the last item.
  package let closingDwell: Duration

  /// The index of the item with which the walk begins: 0.
  package var start: Int { 0 }

  /// The number of swipes, including those within bursts.
  package var swipeCount: Int { steps.reduce(0) { $0 + $1.path.count } }

  /// The time from the start of the walk to its end.
  package var duration: Duration {
    steps.reduce(closingDwell) { $0 + $1.dwell + Self.burstInterval * ($1.path.count - 1) + settle }
  }

  /// Returns the time that `text` states: from 0 to ``settleLimit``, with a unit.
  ///
  /// - Parameter option: The name of the option or field, for the error.
  /// - Throws: `ReelError` of kind `usage`.
  package static func settle(parsing text: String, of option: String) throws(ReelError) -> Duration {
    guard let seconds = TimeText.seconds(text, needsUnit: true), seconds >= 0,
      seconds <= settleLimit / .seconds(1)
    else {
      throw ReelError(
        .usage, "\(option): \"\(text)\" is not a time from 0 to 10 s with a unit",
        advice: "write 250ms or 0ms")
    }
    return .microseconds(Int64((seconds * 1e6).rounded()))
  }

  /// Makes a plan for the items of a feed.
  ///
  /// - Parameters:
  ///   - feed: The feed.
  ///   - swipeCount: The number of swipes, including those within bursts. With `nil`, there is one for each line of a
  ///     trace, or 20 without a trace.
  ///   - spec: The dwell times, and the shares of swipes back and bursts.
  ///   - settle: The time from the end of each drag to its settle.
  ///   - seed: The seed of the random sequences.
  /// - Throws: `ReelError` of kind `usage` for an empty feed, and for a number of swipes below 0 or above `swipeLimit`;
  ///   `ReelError` of kind `badManifest` for a trace that leads out of the feed, and with dwell times by retention for
  ///   the first item without ``ReelPool/FeedItem/retention``, or without ``ReelPool/FeedItem/duration`` where viewers
  ///   are left at the end of its curve, whether or not the walk visits it.
  package init(
    _ feed: Feed, swipeCount: Int? = nil, spec: SwipeSpec, settle: Duration = .zero, seed: UInt64 = 0
  ) throws(ReelError) {
    if spec.dwell == .retention {
      for (index, item) in feed.items.enumerated() { _ = try Self.curve(of: item, at: index) }
    }
    let itemCount = feed.items.count
    guard itemCount > 0 else { throw ReelError(.usage, "an empty feed can't be walked") }
    let count = swipeCount ?? Self.usualSwipeCount(spec.dwell)
    guard (0...Self.swipeLimit).contains(count) else {
      throw ReelError(.usage, "the number of swipes must be from 0 to \(Self.swipeLimit)")
    }
    self.itemCount = itemCount
    self.seed = seed
    self.settle = settle
    if case .trace(let trace) = spec.dwell {
      (steps, closingDwell) = try Self.steps(of: trace, itemCount: itemCount, swipeCount: count)
      return
    }
    var dwells = SplitMix64(seed: seed ^ 0x6477_656c_6c00_0000)
    var random = SplitMix64(seed: seed)
    var (steps, current, travel, rest) = ([WalkStep](), 0, 1, itemCount > 1 ? count : 0)
    while rest > 0 {
      // Each step takes the same number of random values, whether it uses them or not.
      let isBurst = SwipeShares.holds(spec.shares.bursts, for: random.next())
      let isBack = SwipeShares.holds(spec.shares.back, for: random.next())
      let length = Self.burstLengths.lowerBound + Int(random.next() % UInt64(Self.burstLengths.count))
      if !(0..<itemCount).contains(current + travel) { travel = -travel }
      let room = travel > 0 ? itemCount - 1 - current : current
      let burst = min(length, room, rest)
      let dwell = try Self.next(spec.dwell, of: current, &dwells, feed)
      if isBurst, burst > 1 {
        let path = (1...burst).map { current + $0 * travel }
        steps.append(WalkStep(dwell: dwell, kind: .burst, path: path))
      } else {
        let direction = isBack && (0..<itemCount).contains(current - travel) ? -travel : travel
        steps.append(
          WalkStep(dwell: dwell, kind: direction > 0 ? .next : .previous, path: [current + direction]))
      }
      current = steps[steps.count - 1].target
      rest -= steps[steps.count - 1].path.count
    }
    self.steps = steps
    closingDwell = try Self.next(spec.dwell, of: current, &dwells, feed)
  }

  // MARK: - Private

  /// A curve, and the watch time of a viewer who is left at its end.
  private struct Curve {
    let retention: RetentionCurve
    let end: Duration
  }

  private static func curve(of item: FeedItem, at index: Int) throws(ReelError) -> Curve {
    let lacking: String
    if let retention = item.retention {
      let isEmptied = retention.shares.last == 0
      if let duration = item.duration {
        return Curve(retention: retention, end: max(duration, retention.duration))
      }
      if isEmptied { return Curve(retention: retention, end: retention.duration) }
      lacking = "duration"
    } else {
      lacking = "retention"
    }
    throw ReelError(
      .badManifest, "item \(index) has no \"\(lacking)\" to draw a dwell time from", at: item.id.description,
      advice: "add it to the JSON feed, or use another --dwell")
  }

  private static func usualSwipeCount(_ dwell: DwellSpec) -> Int {
    if case .trace(let trace) = dwell { return trace.entries.count }
    return 20
  }

  /// Returns the dwell time of an item in whole microseconds, as it is printed.
  private static func next(
    _ dwell: DwellSpec, of index: Int, _ random: inout SplitMix64, _ feed: Feed
  ) throws(ReelError) -> Duration {
    if let time = dwell.draw(&random) { return time }
    guard dwell == .retention else { return .zero }
    let curve = try curve(of: feed.items[index], at: index)
    guard let seconds = curve.retention.seconds(fallingTo: random.nextUnit()) else { return curve.end }
    return .microseconds(Int64((seconds * 1e6).rounded()))
  }

  private static func steps(
    of trace: DwellTrace, itemCount: Int, swipeCount: Int
  ) throws(ReelError) -> (steps: [WalkStep], closingDwell: Duration) {
    // A move that is never possible is refused even in a line that the walk does not reach.
    for entry in trace.entries {
      switch entry.move {
      case .to(let index) where index >= itemCount:
        throw outside("index \(index) is", itemCount: itemCount, trace, entry)
      case .by(let offset) where abs(offset) >= itemCount:
        throw outside("\(signed(offset)) leads", itemCount: itemCount, trace, entry)
      default: break
      }
    }
    var steps: [WalkStep] = []
    var (current, travel, look) = (0, 1, Duration.zero)
    for number in 0..<(itemCount > 1 ? swipeCount : 0) {
      let entry = trace.entries[number % trace.entries.count]
      look += entry.dwell
      let target: Int
      switch entry.move {
      case .onward:
        if !(0..<itemCount).contains(current + travel) { travel = -travel }
        target = current + travel
      case .by(let offset):
        target = current + offset
        guard (0..<itemCount).contains(target) else {
          throw outside("\(signed(offset)) from item \(current) leads", itemCount: itemCount, trace, entry)
        }
      case .to(let index): target = index
      }
      guard target != current else { continue }
      travel = target < current ? -1 : 1
      let kind: SwipeKind = abs(target - current) > 1 ? .jump : travel > 0 ? .next : .previous
      steps.append(WalkStep(dwell: look, kind: kind, path: [target]))
      current = target
      look = .zero
    }
    let last = trace.entries[(itemCount > 1 ? swipeCount : 0) % trace.entries.count]
    return (steps, look + last.dwell)
  }

  private static func signed(_ offset: Int) -> String { offset > 0 ? "+\(offset)" : "\(offset)" }

  private static func outside(
    _ what: String, itemCount: Int, _ trace: DwellTrace, _ entry: DwellTrace.Entry
  ) -> ReelError {
    ReelError(
      .badManifest, "\(what) outside of the feed, which has \(itemCount.counted("item"))", at: trace.name,
      place: .line(entry.line))
  }
}

/// One step of a walk: a look at the current item, then swipes to another one.
package struct WalkStep: Sendable, Hashable {
  /// The time for which the previous item is looked at, since it became the current one.
  package let dwell: Duration
  /// `next`, `previous`, `jump` or `burst`.
  package let kind: SwipeKind
  /// The target of each swipe, `WalkPlan.burstInterval` apart. Never empty; the first differs from the
  /// current item.
  package let path: [Int]
  /// The item that is looked at afterwards.
  package var target: Int { path[path.count - 1] }
}

/// The way in which an item became the current one.
package enum SwipeKind: String, Sendable, Hashable, CaseIterable, Codable {
  /// The walk began with it.
  case start
  /// A swipe to the next item.
  case next
  /// A swipe to the previous item.
  case previous
  /// A swipe directly to an item that is not a neighbour.
  case jump
  /// One of several quick swipes in a row.
  case burst
}
