package import ReelCore
package import ReelPool
internal import ReelSimulation

/// Which viewers come, when, what each of them watches in order and for how long, and which of them decode.
///
/// The plan depends only on its parameters, and a viewer only on its number: a viewer comes at the same time and watches
/// the same in whichever shard it is.
package struct ViewerPlan: Sendable {
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

  /// What a viewer does from its coming to its leaving.
  package struct Session: Sendable, Hashable {
    /// The number of the viewer, and that of its session, from 0.
    package let viewer: Int
    package let number: Int
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

  /// The time from the first viewer's coming until all leave.
  package let duration: Duration
  /// The viewers of all shards, and the time from the first one's coming until all have come.
  private let viewerCount: Int
  private let ramp: Duration
  private let seed: UInt64
  private let stay: DwellSpec?
  /// The numbers of the viewers of this shard, in the order in which they come.
  package let viewers: StrideTo<Int>
  private let choice: Choice
  private var decoding: Set<Int> = []

  /// - Parameters:
  ///   - stay: How long a session lasts: `fixed` or `exponential`. Nil until its last look ends.
  ///   - decodeShare: The share of the viewers that decode, from 0 to 1: of all viewers, to the nearest whole number.
  ///   - shard: One of `count` machines that have a part of the viewers each, by its index from 0.
  /// - Throws: `ReelError` of kind `usage` for no viewers, no sources, weights that are negative or all 0, another
  ///   `stay`, and the errors of `WalkPlan` for a feed.
  package init(
    viewerCount: Int, ramp: Duration, duration: Duration, stay: DwellSpec? = nil, choice: Choice,
    decodeShare: Double = 0, seed: UInt64 = 0, shard: (index: Int, count: Int) = (0, 1)
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
      let sum = weights.reduce(0, +)
      guard weights.allSatisfy({ $0 >= 0 }), sum > 0, sum.isFinite else {
        throw ReelError(.usage, "weights can't be negative, and their sum must be a number above 0")
      }
    case .feed(let feed, let swipes): _ = try Self.walk(feed, swipes, seed: seed)
    }
    self.viewerCount = viewerCount
    self.ramp = ramp
    self.duration = duration
    self.stay = stay
    self.choice = choice
    self.seed = seed
    viewers = stride(from: shard.index, to: viewerCount, by: shard.count)
    let decodingCount = Int((Double(viewerCount) * min(max(decodeShare, 0), 1)).rounded())
    decoding = Set(order(for: "decode").prefix(decodingCount))
  }

  /// The time at which a viewer comes, after the first one.
  package func arrival(of viewer: Int) -> Duration { ramp * viewer / viewerCount }

  /// Returns true for a viewer that decodes what it watches.
  package func decodes(_ viewer: Int) -> Bool { decoding.contains(viewer) }

  /// Returns all viewers in an order that depends only on the seed and a purpose, for shares of them.
  package func order(for purpose: String) -> [Int] {
    let keys = (0..<viewerCount).map { hash(purpose, $0, 0) }
    return (0..<viewerCount).sorted { (keys[$0], $0) < (keys[$1], $1) }
  }

  /// Returns a session of a viewer.
  package func session(_ number: Int, of viewer: Int) -> Session {
    var random = SplitMix64(seed: hash("session", viewer, number))
    let stay = stay?.draw(&random)
    let looks: [Look]
    switch choice {
    case .inOrder(let count): looks = [Look(source: (viewer + number) % count, dwell: nil)]
    case .weighted(let weights): looks = [Look(source: Self.index(in: weights, &random), dwell: nil)]
    case .feed(let feed, let swipes):
      // What is wrong with a feed does not depend on the seed, and `init` has found nothing.
      looks = (try? Self.walk(feed, swipes, seed: random.next())).map(Self.looks) ?? []
    }
    return Session(viewer: viewer, number: number, stay: stay, looks: looks)
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

  private func hash(_ purpose: String, _ viewer: Int, _ number: Int) -> UInt64 {
    var hash = FNV1a()
    hash.combine(purpose)
    var random = SplitMix64(seed: hash.value ^ seed)
    for part in [viewer, number] { random = SplitMix64(seed: random.next() ^ UInt64(part)) }
    return random.next()
  }
}
