public import ReelCore
internal import ReelPool

/// What a person does who walks a feed, made up in full before the walk begins: the same for the same numbers on every
/// machine, whatever the pool does.
///
/// The walk begins at item 0. Each step goes on in the direction of travel, but in 15 of 100 back to the item before; in
/// 5 of 100 it is a burst of 3 to 8 quick swipes, 80 ms apart, as far as the feed goes. At an end of the feed the
/// direction turns round. Where swipes lead and how long items are looked at come from two sequences of random
/// numbers, so that walks of one seed with other dwell times take the same way.
///
/// A trace says where its swipes lead; it begins again where it is shorter than the walk. What leads out of the feed, an
/// index or a step, is refused: only a line that says nothing turns round at an end. A move to the current item makes the
/// look at it longer.
public struct WalkPlan: Sendable, Hashable {
  /// The time between the swipes of a burst.
  public static let burstInterval = Duration.milliseconds(80)
  /// In how many of 100 steps the walk goes back by one.
  public static let percentBack = 15
  /// In how many of 100 steps there is a burst.
  public static let percentBurst = 5
  /// How many swipes a burst has.
  public static let burstLengths = 3...8
  /// More swipes can't be asked for.
  public static let swipeLimit = 10_000_000

  public let itemCount: Int
  public let seed: UInt64
  /// In their order; empty for a feed of one item, where there is nowhere to go.
  package let steps: [WalkStep]
  /// How long the last item is looked at.
  public let closingDwell: Duration

  /// Where the walk begins.
  public var start: Int { 0 }

  /// All swipes, those inside of bursts included.
  public var swipeCount: Int { steps.reduce(0) { $0 + $1.path.count } }

  /// From the first look to the end of the last.
  public var duration: Duration {
    steps.reduce(closingDwell) { $0 + $1.dwell + Self.burstInterval * ($1.path.count - 1) }
  }

  /// - Parameters:
  ///   - itemCount: Of the feed.
  ///   - swipeCount: How many swipes there are; a burst counts with all of its own. Nil for one for each line of a trace,
  ///     and 20 without a trace.
  ///   - seed: Other walks for other seeds.
  /// - Throws: `ReelError` of kind `usage` for an empty feed and a count below 0 or above `swipeLimit`, `badManifest`
  ///   for a trace that leads out of the feed.
  public init(itemCount: Int, swipeCount: Int? = nil, dwell: DwellSpec, seed: UInt64 = 0) throws(ReelError) {
    guard itemCount > 0 else { throw ReelError(.usage, "an empty feed can't be walked") }
    let count = swipeCount ?? Self.usualSwipeCount(dwell)
    guard (0...Self.swipeLimit).contains(count) else {
      throw ReelError(.usage, "the swipes must be from 0 to \(Self.swipeLimit)")
    }
    self.itemCount = itemCount
    self.seed = seed
    if case .trace(let trace) = dwell {
      (steps, closingDwell) = try Self.steps(of: trace, itemCount: itemCount, swipeCount: count)
      return
    }
    var dwells = SplitMix64(seed: seed ^ 0x6477_656c_6c00_0000)
    let ways = Self.ways(itemCount: itemCount, swipeCount: count, seed: seed)
    steps = ways.map { way in
      let look = Self.next(dwell, &dwells)
      return way.kind == .burst
        ? WalkStep(dwell: look, burstOf: way.count, from: way.from, direction: way.direction)
        : WalkStep(dwell: look, kind: way.kind, from: way.from, to: way.from + way.direction)
    }
    closingDwell = Self.next(dwell, &dwells)
  }

  // MARK: - Private

  /// Where a step leads, before it is known how long it waits.
  private struct Way {
    let kind: SwipeKind
    let from: Int
    let direction: Int
    let count: Int
  }

  private static func usualSwipeCount(_ dwell: DwellSpec) -> Int {
    if case .trace(let trace) = dwell { return trace.entries.count }
    return 20
  }

  private static func next(_ dwell: DwellSpec, _ random: inout SplitMix64) -> Duration {
    switch dwell {
    case .fixed(let duration): return duration
    case .exponential(let mean):
      // Whole microseconds: what is printed is what was done.
      return .microseconds(Int64((Double(mean.wholeMicroseconds) * random.nextExponential()).rounded()))
    case .trace: return .zero
    }
  }

  private static func ways(itemCount: Int, swipeCount: Int, seed: UInt64) -> [Way] {
    guard itemCount > 1 else { return [] }
    var random = SplitMix64(seed: seed)
    var (ways, current, travel, rest) = ([Way](), 0, 1, swipeCount)
    while rest > 0 {
      // The same numbers are taken in each step, whatever becomes of them.
      let isBurst = random.next() % 100 < UInt64(percentBurst)
      let isBack = random.next() % 100 < UInt64(percentBack)
      let length = burstLengths.lowerBound + Int(random.next() % UInt64(burstLengths.count))
      if !(0..<itemCount).contains(current + travel) { travel = -travel }
      let room = travel > 0 ? itemCount - 1 - current : current
      let burst = min(length, room, rest)
      let way: Way
      if isBurst, burst > 1 {
        way = Way(kind: .burst, from: current, direction: travel, count: burst)
      } else {
        let direction = isBack && (0..<itemCount).contains(current - travel) ? -travel : travel
        way = Way(kind: direction > 0 ? .next : .previous, from: current, direction: direction, count: 1)
      }
      ways.append(way)
      current += way.direction * way.count
      rest -= way.count
    }
    return ways
  }

  private static func steps(
    of trace: DwellTrace, itemCount: Int, swipeCount: Int
  ) throws(ReelError) -> (steps: [WalkStep], closingDwell: Duration) {
    // What never can be done is refused on any way, in lines that the walk does not get to as well.
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
      steps.append(WalkStep(dwell: look, kind: kind, from: current, to: target))
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
    let items = itemCount == 1 ? "1 item" : "\(itemCount) items"
    return ReelError(
      .badManifest, "\(what) outside of the feed, which has \(items)", at: trace.name,
      place: .line(entry.line))
  }
}
