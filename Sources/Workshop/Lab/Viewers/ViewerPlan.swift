internal import Foundation
package import ReelCore
package import ReelPool
internal import ReelSimulation

/// Which viewers come, when, what each of them watches in order and for how long, and which of them decode.
///
/// The plan depends only on its parameters, and a viewer only on its number: a viewer comes at the same time and watches
/// the same in whichever shard it is.
package struct ViewerPlan: Sendable, Hashable {
  /// What the sessions of viewers consist of.
  package enum Choice: Sendable, Hashable {
    /// One source, in the order of a list of this many. Each viewer begins with the source after that of the viewer
    /// before, and goes on with the next one.
    case inOrder(count: Int)
    /// One source, drawn by these weights.
    case weighted([Double])
    /// The items of a feed, swiped through once.
    case feed(Feed, SwipeSpec)
  }

  /// One of several machines that have a part of the viewers each.
  package struct Shard: Sendable, Hashable {
    /// From 0 to `count` - 1.
    package let index: Int
    package let count: Int

    package init(index: Int, count: Int) { (self.index, self.count) = (index, count) }
  }

  /// What a viewer does from its coming to its leaving.
  package struct Session: Sendable, Hashable {
    /// The number of the viewer, and that of its session, from 0.
    package let viewer: Int
    package let number: Int
    /// A UUID, the same for the same seed.
    package let id: String
    /// The time after which the viewer leaves, wherever it is; nil to stay until the last look ends.
    package let stay: Duration?
    /// Never empty.
    package let looks: [Look]
  }

  /// The watching of one source.
  package struct Look: Sendable, Hashable {
    /// The index of the source, or of the item of the feed.
    package let source: Int
    /// The time after which the viewer swipes on; nil to watch to the end.
    package let dwell: Duration?
  }

  /// The viewers of all shards.
  package let viewerCount: Int
  /// The time from the first viewer's coming until all have come.
  package let ramp: Duration
  /// The time from the first viewer's coming until all leave.
  package let duration: Duration
  package let seed: UInt64
  private let stay: DwellSpec?
  private let choice: Choice
  private let shard: Shard
  private let decoding: Set<Int>

  /// - Parameters:
  ///   - stay: How long a session lasts: `fixed` or `exponential`. Nil until its last look ends.
  ///   - decodeShare: The share of the viewers that decode, from 0 to 1: of all viewers, to the nearest whole number.
  /// - Throws: `ReelError` of kind `usage` for no viewers, no sources, weights that are negative or all 0, another
  ///   `stay`, and the errors of `WalkPlan` for a feed.
  package init(
    viewerCount: Int, ramp: Duration, duration: Duration, stay: DwellSpec? = nil, choice: Choice,
    decodeShare: Double = 0, seed: UInt64 = 0, shard: Shard = Shard(index: 0, count: 1)
  ) throws(ReelError) {
    guard viewerCount > 0 else { throw ReelError(.usage, "the number of viewers must be at least 1") }
    switch stay {
    case nil, .fixed, .exponential: break
    case .retention, .trace:
      throw ReelError(.usage, "the stay of a viewer must be fixed or exponential", advice: "write exp:90s")
    }
    switch choice {
    case .inOrder(let count):
      guard count > 0 else { throw ReelError(.usage, "viewers need a source") }
    case .weighted(let weights):
      guard weights.allSatisfy({ $0 >= 0 && $0.isFinite }), weights.contains(where: { $0 > 0 }) else {
        throw ReelError(.usage, "weights can't be negative, and one must be above 0")
      }
    case .feed(let feed, let swipes): _ = try Self.walk(feed, swipes, seed: seed)
    }
    self.viewerCount = viewerCount
    self.ramp = ramp
    self.duration = duration
    self.stay = stay
    self.choice = choice
    self.seed = seed
    self.shard = shard
    decoding = Set(
      Self.order(of: viewerCount, for: "decode", seed: seed)
        .prefix(Int((Double(viewerCount) * min(max(decodeShare, 0), 1)).rounded())))
  }

  /// The numbers of the viewers of this shard, in the order in which they come.
  package var viewers: StrideTo<Int> { stride(from: shard.index, to: viewerCount, by: shard.count) }

  /// The time at which a viewer comes, after the first one.
  package func arrival(of viewer: Int) -> Duration { ramp * viewer / viewerCount }

  /// Returns true for a viewer that decodes what it watches.
  package func decodes(_ viewer: Int) -> Bool { decoding.contains(viewer) }

  /// Returns all viewers in an order that depends only on the seed and a purpose, for shares of them.
  package func order(for purpose: String) -> [Int] {
    Self.order(of: viewerCount, for: purpose, seed: seed)
  }

  /// Returns a session of a viewer.
  package func session(_ number: Int, of viewer: Int) -> Session {
    var random = SplitMix64(seed: Self.hash("session", viewer, number, seed: seed))
    let id = Self.uuid(random.next(), random.next())
    let stay = stay?.draw(&random)
    let looks: [Look]
    switch choice {
    case .inOrder(let count): looks = [Look(source: (viewer + number) % count, dwell: nil)]
    case .weighted(let weights): looks = [Look(source: Self.index(in: weights, &random), dwell: nil)]
    case .feed(let feed, let swipes):
      // What is wrong with a feed does not depend on the seed, and `init` has found nothing.
      looks = (try? Self.walk(feed, swipes, seed: random.next())).map(Self.looks) ?? []
    }
    return Session(viewer: viewer, number: number, id: id, stay: stay, looks: looks)
  }

  // MARK: - Private

  private static func walk(_ feed: Feed, _ swipes: SwipeSpec, seed: UInt64) throws(ReelError) -> WalkPlan {
    try WalkPlan(feed, swipeCount: max(feed.items.count - 1, 0), spec: swipes, seed: seed)
  }

  private static func looks(of plan: WalkPlan) -> [Look] {
    var (looks, current) = ([Look](), plan.start)
    for step in plan.steps {
      looks.append(Look(source: current, dwell: step.dwell))
      looks += step.path.dropLast().map { Look(source: $0, dwell: WalkPlan.burstInterval) }
      current = step.target
    }
    return looks + [Look(source: current, dwell: plan.closingDwell)]
  }

  private static func index(in weights: [Double], _ random: inout SplitMix64) -> Int {
    var rest = random.nextUnit() * weights.reduce(0, +)
    for (index, weight) in weights.enumerated() {
      rest -= weight
      if rest < 0 { return index }
    }
    // The sum was rounded up.
    return weights.lastIndex { $0 > 0 } ?? 0
  }

  private static func order(of count: Int, for purpose: String, seed: UInt64) -> [Int] {
    let keys = (0..<count).map { hash(purpose, $0, 0, seed: seed) }
    return (0..<count).sorted { (keys[$0], $0) < (keys[$1], $1) }
  }

  private static func hash(_ purpose: String, _ viewer: Int, _ number: Int, seed: UInt64) -> UInt64 {
    var hash = FNV1a()
    hash.combine(purpose)
    var random = SplitMix64(seed: hash.value ^ seed)
    for part in [viewer, number] { random = SplitMix64(seed: random.next() ^ UInt64(part)) }
    return random.next()
  }

  /// A UUID of random bits (RFC 9562 §5.4).
  private static func uuid(_ high: UInt64, _ low: UInt64) -> String {
    let high = high & ~0xf000 | 0x4000
    let low = low & ~(3 << 62) | 1 << 63
    let digits = [high, low].map { number in
      let text = String(number, radix: 16)
      return String(repeating: "0", count: 16 - text.count) + text
    }.joined()
    var parts: [Substring] = []
    var rest = digits[...]
    for length in [8, 4, 4, 4, 12] {
      parts.append(rest.prefix(length))
      rest = rest.dropFirst(length)
    }
    return parts.joined(separator: "-")
  }
}
