package import ReelCore
internal import ReelPlayback
package import ReelPool

/// Loads what is best if the viewer's swipes and the rate of the link are known.
///
/// Whenever it is asked for a plan, the policy solves an `OracleProblem` of the next visits, from what is loaded by then,
/// and asks for the parts in the order of the solution: the lowest rung only, and of each item no more than is going to be
/// watched. So it is a rolling horizon: ``visitLimit`` visits or ``horizon`` ahead, whichever is less. The search ends at
/// ``nodeLimit`` branches, and in each stop it considers the window that the next visits make. `OracleSolver` says what
/// its result is then.
///
/// The pool limits what a policy can do: the current item loads its first frame before all others, even if it is only
/// passed by, and a segment that has been asked for comes as a whole.
///
/// A walk makes the policy with all that it knows. Without that it loads nothing beside the current item.
package struct OraclePreload: PreloadPolicy {
  /// What the policy knows of a walk.
  package struct Knowledge: Sendable {
    fileprivate let timetable: WalkTimetable
    fileprivate let link: OracleLink
    fileprivate let decodeTime: Int64
    fileprivate let media: [Int: OracleMedia]
    fileprivate let clock: any MonotonicClock
    fileprivate let zero: Duration

    /// - Parameters:
    ///   - plan: The walk, which begins now.
    ///   - chunks: By index in the feed; `nil` for an item that is not known.
    ///   - link: The link.
    ///   - decodeCost: The cost of decoding.
    ///   - clock: The walk's clock.
    package init(
      _ plan: WalkPlan, chunks: (Int) -> ItemChunks?, link: LinkSpec, decodeCost: DecodeCost,
      clock: any MonotonicClock
    ) {
      timetable = WalkTimetable(plan)
      self.link = OracleLink(link)
      decodeTime = (decodeCost.opening + decodeCost.frame * 2).wholeMicroseconds
      var media: [Int: OracleMedia] = [:]
      for index in Set(timetable.stops.map(\.index)) {
        media[index] = chunks(index).flatMap { OracleMedia($0) }
      }
      self.media = media
      self.clock = clock
      zero = clock.now
    }
  }

  /// The visits that are looked ahead.
  package static let visitLimit = 8
  /// The time that is looked ahead.
  package static let horizon = Duration.seconds(120)
  /// The branches that are searched for a plan.
  package static let nodeLimit = 300

  private let knowledge: Knowledge?

  package init(_ knowledge: Knowledge? = nil) { self.knowledge = knowledge }

  package var description: String { "oracle" }

  package func plan(in situation: PoolSituation) -> PreloadPlan {
    var plan = PreloadPlan(current: LoadingBounds(peakBitRate: Self.lowest, startPeakBitRate: Self.lowest))
    guard let knowledge, let outlook = Outlook(knowledge, situation),
      let solution = OracleSolver.solve(
        outlook.problem, windows: .nearest, nodeLimit: Self.nodeLimit)
    else { return plan }
    plan.current.forwardBufferDuration = outlook.currentDepth(solution)
    plan.neighbours = outlook.neighbours(solution)
    if outlook.awaitsStart {
      plan.reviewInterval = PreloadPlan.minimumReviewInterval
    } else if !solution.steps.isEmpty {
      plan.reviewInterval = Self.reviewInterval
    }
    return plan
  }

  // MARK: - Private

  /// The bit rate that only the lowest rung has.
  fileprivate static let lowest = 1
  /// The longest time for which a plan holds while something is to be loaded.
  private static let reviewInterval = Duration.milliseconds(250)
}

/// The problem of the next visits, and what its solution means for the pool.
private struct Outlook {
  var problem: OracleProblem
  /// The current item plays as soon as it has some media.
  let awaitsStart: Bool
  private let situation: PoolSituation
  private let media: [Int: OracleMedia]
  /// How much of the current item is going to be watched.
  private let rest: Int64

  /// Nil if the situation is not one of the walk.
  init?(_ knowledge: OraclePreload.Knowledge, _ situation: PoolSituation) {
    let timetable = knowledge.timetable
    let now = (knowledge.clock.now - knowledge.zero).wholeMicroseconds
    let reached = timetable.stops.lastIndex { $0.time <= now } ?? 0
    // The pool may learn of a swipe a moment later.
    guard
      let first = [reached, reached - 1].first(where: {
        timetable.stops.indices.contains($0) && timetable.stops[$0].index == situation.currentIndex
      }), now < timetable.end
    else { return nil }
    var last = first
    var visitCount = 0
    let limit = now + OraclePreload.horizon.wholeMicroseconds
    while last + 1 < timetable.stops.count, visitCount < OraclePreload.visitLimit,
      timetable.stops[last + 1].time < limit
    {
      last += 1
      if timetable.stops[last].settle != nil { visitCount += 1 }
    }
    var stops = Array(timetable.stops[first...last])
    stops[0].time = min(now, timetable.end(of: first))
    self.situation = situation
    media = knowledge.media
    let current = situation.current
    let settle = stops[0].settle
    rest = settle.map { timetable.end(of: first) - max($0, now) } ?? 0
    awaitsStart =
      (settle.map { $0 <= now } ?? false) && current.position == .zero
      && current.bufferedDuration < BufferingThresholds().start
    var items: [OracleProblem.Item] = []
    for stop in stops where !items.contains(where: { $0.index == stop.index }) {
      let known = knowledge.media[stop.index]
      var item = OracleProblem.Item(index: stop.index, parts: known?.parts ?? [], rewind: known?.rewind)
      if let known, let loaded = situation.items.first(where: { $0.index == stop.index }) {
        item.progress = known.progress(
          loaded, roundTrip: knowledge.link.roundTrip, readyAt: loaded.distance == 0 ? now : 0)
        if loaded.hasFailed { item.parts = [] }
      }
      items.append(item)
    }
    problem = OracleProblem(
      link: knowledge.link, slotCount: situation.slotCount, decodeTime: knowledge.decodeTime, stops: stops,
      end: timetable.end(of: last), items: items)
  }

  /// The media that the current item loads ahead, before the neighbours.
  func currentDepth(_ solution: OracleSolver.Solution) -> Duration {
    guard !awaitsStart, let media = media[situation.currentIndex] else {
      return depth(OracleMedia.startMedia)
    }
    let run = solution.steps.prefix { $0.index == situation.currentIndex }
    let isLast = !solution.steps.dropFirst(run.count).contains { $0.index != situation.currentIndex }
    guard !isLast else { return depth(rest) }
    guard let part = run.last?.part else { return depth(0) }
    return depth(min(media.ends[part] - situation.current.position.wholeMicroseconds, rest))
  }

  /// The neighbours, in the order of the solution. Behind them come those that keep what they have.
  func neighbours(_ solution: OracleSolver.Solution) -> [PreloadPlan.Neighbour] {
    let window = solution.window
    var neighbours: [PreloadPlan.Neighbour] = []
    var seen: Set<Int> = [situation.currentIndex]
    for (place, step) in solution.steps.enumerated()
    where window.contains(step.index) && seen.insert(step.index).inserted {
      let run = solution.steps[place...].prefix { $0.index == step.index }
      let position = self.position(of: step.index)
      let end = run.last.flatMap { media[step.index]?.ends[$0.part] } ?? 0
      let target = PreloadTarget(stage: .buffered, bufferDuration: depth(end - position))
      neighbours.append(neighbour(step.index, target))
    }
    for index in window where seen.insert(index).inserted {
      let stage = situation.items.first { $0.index == index }?.stage ?? .none
      let isNeeded = problem.stops.contains { $0.index == index && $0.settle != nil }
      // An item between others needs a slot, though nothing of it. Its first frame stays if it is there.
      let target =
        isNeeded
        ? PreloadTarget(stage: .buffered, bufferDuration: depth(0))
        : PreloadTarget(stage: stage >= .firstFrame ? .firstFrame : .manifest)
      neighbours.append(neighbour(index, target))
    }
    return neighbours
  }

  private func neighbour(_ index: Int, _ target: PreloadTarget) -> PreloadPlan.Neighbour {
    var target = target
    (target.peakBitRate, target.startPeakBitRate) = (OraclePreload.lowest, OraclePreload.lowest)
    return PreloadPlan.Neighbour(distance: index - situation.currentIndex, target: target)
  }

  private func position(of index: Int) -> Int64 {
    situation.items.first { $0.index == index }?.position.wholeMicroseconds ?? 0
  }

  private func depth(_ media: Int64) -> Duration { .microseconds(max(media, OracleMedia.startMedia)) }
}
