/// Finds the order of fetches that minimizes an `OracleProblem`'s cost.
///
/// A depth-first search tries, whenever a fetch ends or the current item changes, each item that has a part to fetch, and
/// to fetch nothing until the next change. It leaves out:
/// - parts that are of no use, because they would be complete too late or are never reached,
/// - branches whose cost is no less than the best one's even if every later visit had the link for itself.
///
/// The result is optimal among these orders, unless the search ended at its limit (``Solution/isComplete``). Before it,
/// the parts are taken in the order in which they are needed, in that order with all first parts first, and in both with
/// one decision changed. So a search that ends at its limit is no worse than those.
package struct OracleSolver: Sendable {
  /// Which windows are tried.
  package enum Windows: Sendable, Hashable {
    /// All. The number of branches grows with the number of slots at each stop.
    case all
    /// The one that grows from the current item by the next items to be visited, as far as they fit.
    case nearest
  }

  /// A fetch, or what of it falls between two changes of the current item.
  package struct Step: Sendable, Hashable {
    /// The item's index in the feed.
    package var index: Int
    package var part: Int
    package var begin: Int64
    package var end: Int64
    package var isComplete: Bool
  }

  package struct Solution: Sendable, Hashable {
    package var cost: OracleProblem.Cost
    package var steps: [Step]
    /// The delay of each visit, in the order of the stops; `nil` for an item passed by.
    package var delays: [Int64?]
    /// The window of the first stop.
    package var window: ClosedRange<Int>
    /// True if the whole tree was searched.
    package var isComplete: Bool
  }

  private typealias Cost = OracleProblem.Cost

  private struct State {
    var time: Int64
    var stop: Int
    var window: ClosedRange<Int>
    /// The window of the first stop.
    var firstWindow: ClosedRange<Int>?
    /// By place in the problem's items.
    var progress: [OracleProblem.Progress]
    var cost = Cost()
    /// The rebuffering of the current visit so far.
    var visitRebuffering: Int64 = 0
    var delays: [Int64?] = []
    var steps: [Step] = []
  }

  /// An item whose next part is of use.
  private struct Candidate {
    let place: Int
    let isFirstPart: Bool
    /// When the part is needed.
    let due: Int64
  }

  private let problem: OracleProblem
  private let windows: Windows
  private let nodeLimit: Int
  /// The place of each stop's item.
  private let places: [Int]
  /// When an item can be loaded for a stop at the soonest and held until then.
  private let releases: [Int64]
  private var nodeCount = 0
  private var best: State?

  /// The best schedule; `nil` for a problem without stops.
  package static func solve(
    _ problem: OracleProblem, windows: Windows = .all, nodeLimit: Int = .max
  ) -> Solution? {
    var solver = OracleSolver(problem, windows: windows, nodeLimit: nodeLimit)
    return solver.solve()
  }

  private init(_ problem: OracleProblem, windows: Windows, nodeLimit: Int) {
    self.problem = problem
    self.windows = windows
    self.nodeLimit = nodeLimit
    places = problem.stops.map { stop in problem.items.firstIndex { $0.index == stop.index } ?? 0 }
    releases = problem.stops.indices.map { stop in
      var first = stop
      while first > 0,
        abs(problem.stops[first - 1].index - problem.stops[stop].index) < problem.slotCount
      {
        first -= 1
      }
      return problem.stops[first].time
    }
  }

  private mutating func solve() -> Solution? {
    guard !problem.stops.isEmpty, !problem.items.isEmpty else { return nil }
    let start = State(
      time: problem.begin, stop: 0, window: nearestWindow(of: 0), progress: problem.items.map(\.progress))
    for firstPartsFirst in [false, true] {
      let count = dive(from: start, firstPartsFirst: firstPartsFirst, change: nil)
      guard nodeLimit < .max else { continue }
      // Only bytes could be saved, and each part is of use.
      if let best, best.cost.rebuffering == 0, best.cost.delay == delayBound(start) {
        return solution(best, isComplete: false)
      }
      for depth in 0..<min(count, Self.changedDecisionLimit) {
        for choice in 1..<max(problem.items.count, 2) where nodeCount < nodeLimit {
          _ = dive(from: start, firstPartsFirst: firstPartsFirst, change: (depth, choice))
        }
      }
    }
    for window in allWindows(of: 0) {
      var state = start
      enter(window, &state)
      search(state)
    }
    return best.map { solution($0, isComplete: nodeCount < nodeLimit) }
  }

  private func solution(_ state: State, isComplete: Bool) -> Solution {
    Solution(
      cost: state.cost, steps: state.steps, delays: state.delays,
      window: state.firstWindow ?? nearestWindow(of: 0), isComplete: isComplete)
  }

  // MARK: Search

  /// The decisions that are changed one by one before the search.
  private static let changedDecisionLimit = 6

  private mutating func search(_ state: State) {
    guard nodeCount < nodeLimit else { return }
    nodeCount += 1
    guard state.stop < problem.stops.count else { return note(state) }
    if let best {
      var bound = state.cost
      bound.delay += delayBound(state)
      bound.rebuffering += state.visitRebuffering
      guard bound < best.cost else { return }
    }
    let candidates = candidates(in: state, unblocks: true)
    for candidate in candidates.sorted(by: { $0.due < $1.due }) {
      var next = state
      fetch(candidate.place, &next)
      follow(next)
    }
    // Until its first part is complete, the current item can't be held back.
    guard !isForced(state) else { return }
    var next = state
    next.time = problem.end(of: state.stop)
    follow(next)
  }

  private mutating func follow(_ state: State) {
    guard state.time >= problem.end(of: state.stop) else { return search(state) }
    var next = state
    leave(&next)
    guard next.stop < problem.stops.count else { return search(next) }
    for window in allWindows(of: next.stop) {
      var held = next
      enter(window, &held)
      search(held)
    }
  }

  /// Takes the best candidate each time, except at one decision; returns the number of decisions.
  private mutating func dive(
    from start: State, firstPartsFirst: Bool, change: (depth: Int, choice: Int)?
  ) -> Int {
    var state = start
    enter(nearestWindow(of: 0), &state)
    var depth = 0
    while state.stop < problem.stops.count {
      nodeCount += 1
      let candidates = candidates(in: state, unblocks: false).sorted { left, right in
        if firstPartsFirst, left.isFirstPart != right.isFirstPart { return left.isFirstPart }
        return left.due < right.due
      }
      if candidates.isEmpty {
        state.time = problem.end(of: state.stop)
      } else {
        let choice = change.flatMap { $0.depth == depth ? $0.choice : nil } ?? 0
        guard choice < candidates.count else { return depth }
        fetch(candidates[choice].place, &state)
        depth += 1
      }
      while state.stop < problem.stops.count, state.time >= problem.end(of: state.stop) {
        leave(&state)
        if state.stop < problem.stops.count { enter(nearestWindow(of: state.stop), &state) }
      }
    }
    note(state)
    return depth
  }

  private mutating func note(_ state: State) {
    if best.map({ state.cost < $0.cost }) ?? true { best = state }
  }

  // MARK: Windows

  private func allWindows(of stop: Int) -> [ClosedRange<Int>] {
    guard windows == .all else { return [nearestWindow(of: stop)] }
    let current = problem.stops[stop].index
    var seen: Set<[Bool]> = []
    let windows = (max(0, current - problem.slotCount + 1)...current).flatMap { low in
      (current..<low + problem.slotCount).reversed().map { low...$0 }
    }
    return windows.filter { window in
      seen.insert(problem.items.map { window.contains($0.index) }).inserted
    }
  }

  private func nearestWindow(of stop: Int) -> ClosedRange<Int> {
    var (low, high) = (problem.stops[stop].index, problem.stops[stop].index)
    for later in problem.stops[stop...] where later.settle != nil {
      let (below, above) = (min(low, later.index), max(high, later.index))
      if above - below < problem.slotCount { (low, high) = (below, above) }
    }
    return low...high
  }

  private func enter(_ window: ClosedRange<Int>, _ state: inout State) {
    if state.stop == 0 { state.firstWindow = window }
    state.window = window
    for (place, item) in problem.items.enumerated() where !window.contains(item.index) {
      state.progress[place] = OracleProblem.Progress()
    }
  }

  // MARK: Fetches

  /// True while the current item goes before all others.
  private func isForced(_ state: State) -> Bool {
    let place = places[state.stop]
    return state.progress[place].partCount == 0 && !problem.items[place].parts.isEmpty
  }

  private func candidates(in state: State, unblocks: Bool) -> [Candidate] {
    if isForced(state) {
      let stop = problem.stops[state.stop]
      return [Candidate(place: places[state.stop], isFirstPart: true, due: stop.settle ?? stop.time)]
    }
    return problem.items.indices.compactMap { place in
      guard state.window.contains(problem.items[place].index),
        state.progress[place].partCount < problem.items[place].parts.count,
        let due = due(place, state, unblocks: unblocks)
      else { return nil }
      return Candidate(place: place, isFirstPart: state.progress[place].partCount == 0, due: due)
    }
  }

  /// When the next part of an item is needed; `nil` if no visit can use it.
  ///
  /// - Parameter unblocks: True to count the first part of an item that is passed by, so that it holds up nothing then.
  private func due(_ place: Int, _ state: State, unblocks: Bool) -> Int64? {
    let (item, progress) = (problem.items[place], state.progress[place])
    let part = item.parts[progress.partCount]
    var played: Int64 = 0
    for number in state.stop..<problem.stops.count {
      let stop = problem.stops[number]
      guard abs(stop.index - item.index) < problem.slotCount else { return nil }
      guard places[number] == place, unblocks || stop.settle != nil else { continue }
      let left = problem.end(of: number)
      if progress.partCount == 0 {
        if completion(of: place, state, from: state.time) < left { return stop.settle ?? stop.time }
      } else if let settle = stop.settle {
        let begin = max(settle, progress.readyAt)
        let needed = part.neededAt - progress.position - played
        if needed < left - begin { return begin + max(needed, 0) }
        played += max(left - begin, 0)
      }
    }
    return nil
  }

  /// When the next part of an item is complete if it is fetched from `time` on.
  private func completion(of place: Int, _ state: State, from time: Int64) -> Int64 {
    let (wait, byteCount) = left(of: place, state)
    return problem.link.end(ofByteCount: byteCount, from: time + wait)
  }

  private func left(of place: Int, _ state: State) -> (wait: Int64, byteCount: Int64) {
    let progress = state.progress[place]
    let part = problem.items[place].parts[progress.partCount]
    return progress.left ?? (Int64(part.requestCount) * problem.link.roundTrip, part.byteCount)
  }

  /// Fetches until the part is complete or the stop ends.
  private func fetch(_ place: Int, _ state: inout State) {
    let (wait, byteCount) = left(of: place, state)
    let (begin, limit) = (state.time, problem.end(of: state.stop))
    let end = problem.link.end(ofByteCount: byteCount, from: begin + wait)
    let part = state.progress[place].partCount
    if end <= limit {
      state.time = end
      state.cost.byteCount += byteCount
      complete(place, &state)
    } else {
      let fetched = min(problem.link.byteCount(from: begin + wait, to: limit), max(byteCount - 1, 0))
      state.progress[place].left = (max(0, begin + wait - limit), byteCount - fetched)
      state.cost.byteCount += fetched
      state.time = limit
    }
    state.steps.append(
      Step(
        index: problem.items[place].index, part: part, begin: begin, end: state.time, isComplete: end <= limit
      ))
  }

  /// The next part of an item is complete now.
  private func complete(_ place: Int, _ state: inout State) {
    let part = state.progress[place].partCount
    state.progress[place].partCount += 1
    state.progress[place].left = nil
    if part == 0 {
      state.progress[place].readyAt = state.time + problem.decodeTime
    } else if places[state.stop] == place, let settle = problem.stops[state.stop].settle {
      noteLateness(of: problem.items[place].parts[part], until: state.time, place, settle: settle, &state)
    }
  }

  /// A part of the current item was not complete before `time`.
  private func noteLateness(
    of part: OracleProblem.Part, until time: Int64, _ place: Int, settle: Int64, _ state: inout State
  ) {
    let begin = max(settle, state.progress[place].readyAt)
    let needed = begin + part.neededAt - state.progress[place].position
    guard needed < problem.end(of: state.stop) else { return }
    state.visitRebuffering = max(state.visitRebuffering, time - needed)
  }

  /// The current stop ends.
  private func leave(_ state: inout State) {
    let (stop, place, end) = (problem.stops[state.stop], places[state.stop], problem.end(of: state.stop))
    let progress = state.progress[place]
    if let settle = stop.settle, !problem.items[place].parts.isEmpty {
      let begin = max(settle, progress.readyAt)
      if progress.partCount == 0 || begin >= end {
        if stop.isCounted { state.cost.delay += max(end - settle, 0) }
        state.delays.append(max(end - settle, 0))
      } else {
        if stop.isCounted { state.cost.delay += begin - settle }
        state.delays.append(begin - settle)
        if progress.partCount < problem.items[place].parts.count {
          noteLateness(
            of: problem.items[place].parts[progress.partCount], until: end, place, settle: settle, &state)
        }
        state.cost.rebuffering += state.visitRebuffering
        state.progress[place].position += max(end - begin - state.visitRebuffering, 0)
        if let rewind = problem.items[place].rewind, state.progress[place].position >= rewind.end {
          state.progress[place] = OracleProblem.Progress(rewind, roundTrip: problem.link.roundTrip)
        }
      }
    } else {
      state.delays.append(nil)
    }
    state.visitRebuffering = 0
    state.stop += 1
  }

  // MARK: Bound

  /// What the delays of the visits that have not ended add up to at least.
  private func delayBound(_ state: State) -> Int64 {
    var sum: Int64 = 0
    for number in state.stop..<problem.stops.count {
      let (stop, place) = (problem.stops[number], places[number])
      guard stop.isCounted, let settle = stop.settle, !problem.items[place].parts.isEmpty else { continue }
      let ready =
        state.progress[place].partCount > 0
        ? state.progress[place].readyAt
        : completion(of: place, state, from: max(state.time, releases[number])) + problem.decodeTime
      sum += min(max(ready - settle, 0), max(problem.end(of: number) - settle, 0))
    }
    return sum
  }
}
