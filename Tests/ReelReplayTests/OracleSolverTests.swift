import ReelCore
import ReelReplay
import ReelTestSupport
import Testing

@Suite("The oracle's order of fetches", .hangLimit)
struct OracleSolverTests {
  /// Tries everything: at each end of a fetch and each change of the current item all items with a part left and none, and
  /// all windows. What a schedule costs is found apart, from its log.
  private struct ExhaustiveSearch {
    struct Held {
      var partCount = 0
      var wait: Int64?
      var byteCount: Int64 = 0
    }

    struct Log {
      var byteCount: Int64 = 0
      var completions: [(index: Int, part: Int, time: Int64)] = []
      /// What of an item was complete before a stop is gone; `count` completions were in the log then.
      var losses: [(index: Int, stop: Int, count: Int)] = []
    }

    let problem: OracleProblem
    var best: OracleProblem.Cost?
    var leafCount = 0
    var rewindCount = 0

    init(_ problem: OracleProblem) {
      self.problem = problem
      for window in windows(0) { enter(0, window, problem.items.map { _ in Held() }, Log()) }
    }

    private func windows(_ stop: Int) -> [ClosedRange<Int>] {
      let current = problem.stops[stop].index
      var seen: Set<[Bool]> = []
      return (max(0, current - problem.slotCount + 1)...current).flatMap { low in
        (current..<low + problem.slotCount).map { low...$0 }
      }.filter { window in seen.insert(problem.items.map { window.contains($0.index) }).inserted }
    }

    private mutating func enter(_ stop: Int, _ window: ClosedRange<Int>, _ held: [Held], _ log: Log) {
      var (held, log) = (held, log)
      for (place, item) in problem.items.enumerated()
      where !window.contains(item.index) {
        held[place] = Held()
        log.losses.append((item.index, stop, log.completions.count))
      }
      decide(problem.stops[stop].time, stop, window, held, log)
    }

    private mutating func decide(
      _ time: Int64, _ stop: Int, _ window: ClosedRange<Int>, _ held: [Held], _ log: Log
    ) {
      let limit = problem.end(of: stop)
      guard time < limit else {
        let played = play(log, through: stop)
        guard stop + 1 < problem.stops.count else {
          leafCount += 1
          if best.map({ played.cost < $0 }) ?? true { best = played.cost }
          return
        }
        var (held, log) = (held, log)
        let index = problem.stops[stop].index
        if let place = problem.items.firstIndex(where: { $0.index == index }),
          let rewind = problem.items[place].rewind, played.position >= rewind.end
        {
          rewindCount += 1
          held[place] = Held(
            wait: Int64(rewind.requestCount) * problem.link.roundTrip, byteCount: rewind.byteCount)
          log.losses.append((index, stop + 1, log.completions.count))
        }
        for window in windows(stop + 1) { enter(stop + 1, window, held, log) }
        return
      }
      let current = problem.stops[stop].index
      var places = problem.items.indices.filter {
        window.contains(problem.items[$0].index)
          && held[$0].partCount < problem.items[$0].parts.count
      }
      let forced = places.first { problem.items[$0].index == current && held[$0].partCount == 0 }
      if let forced { places = [forced] } else { decide(limit, stop, window, held, log) }
      for place in places {
        var (next, after) = (held, log)
        let part = problem.items[place].parts[held[place].partCount]
        if next[place].wait == nil {
          next[place].wait = Int64(part.requestCount) * problem.link.roundTrip
          next[place].byteCount = part.byteCount
        }
        let begin = time + (next[place].wait ?? 0)
        let end = problem.link.end(ofByteCount: next[place].byteCount, from: begin)
        if end <= limit {
          after.byteCount += next[place].byteCount
          after.completions.append((problem.items[place].index, held[place].partCount, end))
          next[place] = Held(partCount: held[place].partCount + 1)
          decide(end, stop, window, next, after)
        } else {
          let count = min(problem.link.byteCount(from: begin, to: limit), max(next[place].byteCount - 1, 0))
          after.byteCount += count
          next[place].byteCount -= count
          next[place].wait = max(0, begin - limit)
          decide(limit, stop, window, next, after)
        }
      }
    }

    /// Plays each visit by the log, up to a stop; also returns the position that its item has reached.
    private func play(_ log: Log, through last: Int) -> (cost: OracleProblem.Cost, position: Int64) {
      var cost = OracleProblem.Cost(byteCount: log.byteCount)
      var positions: [Int: (position: Int64, since: Int)] = [:]
      for (number, stop) in problem.stops.enumerated().prefix(last + 1) {
        guard let settle = stop.settle, let item = problem.items.first(where: { $0.index == stop.index })
        else {
          continue
        }
        let left = problem.end(of: number)
        let since = log.losses.last { $0.index == stop.index && $0.stop <= number }?.count ?? 0
        func completion(_ part: Int) -> Int64 {
          log.completions[since...].first { $0.index == stop.index && $0.part == part }?.time ?? .max
        }
        let start = completion(0)
        let ready = start == .max ? .max : max(start + problem.decodeTime, settle)
        if stop.isCounted { cost.delay += min(ready, left) - settle }
        guard ready < left else { continue }
        var (time, position) = (
          ready, positions[stop.index].flatMap { $0.since == since ? $0.position : nil } ?? 0
        )
        for (part, piece) in item.parts.enumerated().dropFirst() where piece.neededAt >= position {
          guard time + piece.neededAt - position < left else { break }
          time += piece.neededAt - position
          position = piece.neededAt
          let resumed = min(max(completion(part), time), left)
          cost.rebuffering += resumed - time
          time = resumed
        }
        positions[stop.index] = (position + left - time, since)
      }
      let stop = problem.stops[last]
      return (cost, stop.settle == nil ? 0 : positions[stop.index]?.position ?? 0)
    }
  }

  private static func link(_ random: inout SplitMix64) throws -> LinkSpec {
    guard random.next() % 3 != 0 else {
      return try LinkSpec(
        bitsPerSecond: Int64(200_000 + random.next() % 2_000_000), roundTripTime: .milliseconds(50))
    }
    let rates = (0..<3).map { _ in Int64(random.next() % 3) * 400_000 }
    let steps = rates.enumerated().map {
      LinkRecording.Step(start: .milliseconds(700 * $0), bitsPerSecond: $0 == 0 ? $1 + 100_000 : $1)
    }
    return LinkSpec(
      try LinkRecording(steps, period: .milliseconds(2100)), roundTripTime: .milliseconds(50))
  }

  /// A problem with up to 4 stops and 6 parts.
  private static func problem(_ seed: UInt64) throws -> OracleProblem {
    var random = SplitMix64(seed: seed)
    func pick(_ range: ClosedRange<Int>) -> Int {
      range.lowerBound + Int(random.next() % UInt64(range.count))
    }
    let slotCount = pick(1...3)
    var stops: [OracleProblem.Stop] = []
    var (time, index): (Int64, Int) = (0, pick(0...1))
    for number in 0..<pick(2...4) {
      let isPassing = number > 0 && pick(0...5) == 0
      let settle = number == 0 ? time : time + 250_000
      stops.append(
        OracleProblem.Stop(
          time: time, index: index, settle: isPassing ? nil : settle, isCounted: number > 0 || pick(0...1) > 0
        ))
      time = isPassing ? time + 80_000 : settle + Int64(pick(1...15)) * 100_000
      index = max(0, index + (pick(0...3) == 0 ? -1 : 1))
      if stops.last?.index == index { index += 1 }
    }
    var rest = 6
    var items: [OracleProblem.Item] = []
    for index in Set(stops.map(\.index)).sorted() {
      let count = min(pick(1...3), rest - (4 - items.count - 1))
      var parts: [OracleProblem.Part] = []
      for part in 0..<max(count, 1) {
        parts.append(
          OracleProblem.Part(
            requestCount: part == 0 ? pick(1...3) : pick(0...1), byteCount: Int64(pick(5...60)) * 1000,
            neededAt: Int64(part) * 400_000))
      }
      rest -= parts.count
      var item = OracleProblem.Item(index: index, parts: parts)
      if pick(0...2) > 0 {
        item.rewind = OracleProblem.Rewind(
          end: (parts.last?.neededAt ?? 0) + Int64(pick(1...5)) * 100_000, requestCount: 1,
          byteCount: max(parts[0].byteCount - Int64(pick(0...20)) * 1000, 1))
      }
      items.append(item)
    }
    return OracleProblem(
      link: OracleLink(try link(&random)), slotCount: slotCount, decodeTime: Int64(pick(0...1)) * 8000,
      stops: stops, end: time, items: items)
  }

  @Test("Small problems are solved as exhaustive search solves them")
  func exhaustive() throws {
    var (leafCount, hardCount, windowCount, rewindCount) = (0, 0, 0, 0)
    for seed in 0..<300 as Range<UInt64> {
      let problem = try Self.problem(seed)
      let search = ExhaustiveSearch(problem)
      let solution = try #require(OracleSolver.solve(problem))
      #expect(solution.isComplete)
      #expect(solution.cost == search.best, "seed \(seed)")
      leafCount += search.leafCount
      if search.rewindCount > 0 { rewindCount += 1 }
      if solution.cost.delay > 0, solution.cost.rebuffering > 0 { hardCount += 1 }
      // As a policy solves it: never better, and often as good.
      let quick = try #require(OracleSolver.solve(problem, windows: .nearest, nodeLimit: 300))
      #expect(quick.cost >= solution.cost)
      if quick.cost == solution.cost { windowCount += 1 }
    }
    #expect(leafCount > 100_000)
    #expect(hardCount > 30)
    #expect(windowCount > 200)
    #expect(rewindCount > 50)
  }

  @Test("Delays come before rebuffering, and rebuffering before bytes")
  func order() throws {
    // 100 kB/s. The current item plays from its start; the next one is wanted after 1 s.
    func problem(next: Int64) throws -> OracleProblem {
      var items = [0, 1].map {
        OracleProblem.Item(
          index: $0,
          parts: [
            OracleProblem.Part(requestCount: 0, byteCount: 10_000, neededAt: 0),
            OracleProblem.Part(requestCount: 0, byteCount: 40_000, neededAt: 300_000),
          ])
      }
      items[1].parts[0].byteCount = next
      return OracleProblem(
        link: OracleLink(try LinkSpec(bitsPerSecond: 800_000, roundTripTime: .zero)), slotCount: 2,
        stops: [
          OracleProblem.Stop(time: 0, index: 0, settle: 0, isCounted: false),
          OracleProblem.Stop(time: 1_000_000, index: 1, settle: 1_000_000),
        ], end: 1_100_000, items: items)
    }
    // There is time for all but the last part, which is never reached.
    let easy = try #require(OracleSolver.solve(try problem(next: 50_000)))
    #expect(easy.steps.map { [$0.index, $0.part] } == [[0, 0], [0, 1], [1, 0]])
    #expect(easy.cost == OracleProblem.Cost(rebuffering: 100_000, byteCount: 100_000))
    // The next item's start needs the link.
    let hard = try #require(OracleSolver.solve(try problem(next: 85_000)))
    #expect(hard.steps.map { [$0.index, $0.part] } == [[0, 0], [1, 0]])
    #expect(hard.cost == OracleProblem.Cost(rebuffering: 600_000, byteCount: 95_000))
    #expect(hard.delays == [100_000, 0])
  }

  @Test("An item that has ended is loaded again before it is swiped back to, without its head")
  func rewind() throws {
    // 100 kB/s. The first item ends after 400 ms, and is left after 1 s for half a second.
    let parts = [
      OracleProblem.Part(requestCount: 2, byteCount: 20_000, neededAt: 0),
      OracleProblem.Part(requestCount: 0, byteCount: 10_000, neededAt: 200_000),
    ]
    var items = [0, 1].map { OracleProblem.Item(index: $0, parts: parts) }
    items[0].rewind = OracleProblem.Rewind(end: 400_000, requestCount: 1, byteCount: 15_000)
    let problem = OracleProblem(
      link: OracleLink(try LinkSpec(bitsPerSecond: 800_000, roundTripTime: .milliseconds(50))), slotCount: 2,
      stops: [
        OracleProblem.Stop(time: 0, index: 0, settle: 0, isCounted: false),
        OracleProblem.Stop(time: 1_000_000, index: 1, settle: 1_000_000),
        OracleProblem.Stop(time: 1_500_000, index: 0, settle: 1_500_000),
      ], end: 2_000_000, items: items)
    let solution = try #require(OracleSolver.solve(problem))
    #expect(solution.isComplete)
    #expect(
      solution.steps.map { [$0.index, $0.part] } == [[0, 0], [0, 1], [1, 0], [1, 1], [0, 0], [0, 1]])
    // From the moment at which it is left: a round trip and 15 kB, then the rest.
    #expect(solution.steps[4].begin == 1_000_000 && solution.steps[4].end == 1_200_000)
    #expect(solution.cost == OracleProblem.Cost(byteCount: 85_000))
    #expect(solution.cost == ExhaustiveSearch(problem).best)
  }

  @Test("A gap of the link is bridged")
  func gap() throws {
    let recording = try LinkRecording(
      [
        LinkRecording.Step(start: .zero, bitsPerSecond: 800_000),
        LinkRecording.Step(start: .seconds(1), bitsPerSecond: 0),
      ], period: .seconds(100))
    let link = OracleLink(LinkSpec(recording, roundTripTime: .zero))
    #expect(link.end(ofByteCount: 100_000, from: 0) == 1_000_000)
    #expect(link.end(ofByteCount: 1, from: 1_000_000) == 100_000_010)
    #expect(link.byteCount(from: 500_000, to: 99_000_000) == 50_000)
    let parts = (0..<5).map {
      OracleProblem.Part(requestCount: 0, byteCount: 20_000, neededAt: Int64($0) * 2_000_000)
    }
    let problem = OracleProblem(
      link: link, slotCount: 3,
      stops: [
        OracleProblem.Stop(time: 0, index: 0, settle: 0),
        OracleProblem.Stop(time: 5_000_000, index: 1, settle: 5_250_000),
        OracleProblem.Stop(time: 6_000_000, index: 2, settle: 6_250_000),
      ], end: 7_000_000, items: (0..<3).map { OracleProblem.Item(index: $0, parts: parts) })
    let solution = try #require(OracleSolver.solve(problem))
    #expect(solution.cost == OracleProblem.Cost(delay: 200_000, byteCount: 100_000))
    #expect(
      Set(solution.steps.map { [$0.index, $0.part] }) == [[0, 0], [0, 1], [0, 2], [1, 0], [2, 0]])
  }

  @Test("The link's arithmetic is that of its recording")
  func link() throws {
    let spec = try LinkSpec(parsing: "800kbit/50ms")
    let link = OracleLink(spec)
    #expect(link.roundTrip == 50_000)
    #expect(link.end(ofByteCount: 100_000, from: 123) == 1_000_123)
    var random = SplitMix64(seed: 4)
    for _ in 0..<50 {
      var spec = try Self.link(&random)
      spec.start = .milliseconds(Int64(random.next() % 5000))
      let link = OracleLink(spec)
      var bottleneck = LinkBottleneck(spec)
      for _ in 0..<20 {
        let begin = max(bottleneck.freeAt, .microseconds(Int64(random.next() % 9_000_000)))
        let count = Int(random.next() % 100_000)
        let end = bottleneck.put(count, at: begin)
        let computed = link.end(ofByteCount: Int64(count), from: begin.wholeMicroseconds)
        #expect(abs(end.wholeMicroseconds - computed) <= 2 || count == 0)
        #expect(abs(link.byteCount(from: begin.wholeMicroseconds, to: computed) - Int64(count)) <= 2)
      }
    }
  }
}
