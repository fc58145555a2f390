package import ReelCore
package import ReelPool

/// What no policy can go below in the delays to the second frame, on one walk over one link.
///
/// The items' starts share the link and everything else yields to them. A start is loaded from the moment at which the
/// item comes within reach of the pool's slots, to stay there until the swipe. It takes, one after the other,
/// - a round trip for the manifest,
/// - a round trip for the rung's playlist, if it has one besides the manifest and an initialization segment,
/// - a round trip and the bytes of the first segment up to its second frame, of the rung with the fewest, at the recorded
///   rate,
/// - the decoding of the second frame; and from the beginning on at least opening a decoder and decoding two frames.
///
/// A start that an earlier visit can have left in the pool takes nothing. New connections, windows, certificates,
/// look-ups, jitter, all other bytes, the frame's duration, and that a slot may serve only one item are left out: they
/// only add to the delays. An item whose chunks are not known takes nothing.
///
/// An item that is left before its second frame counts with the time from the settle until then, as in reports.
package struct SecondFrameBound: Sendable, Hashable {
  /// By swipe that counts, in the walk's order: its delay if all other starts yield too. The bounds of several swipes may
  /// not be reachable together.
  package let delays: [Duration]
  /// Bounds of the mean and of percentiles, as starts compete for the link; `nil` if no swipe was counted.
  ///
  /// For a delay x, the most swipes that can be as fast as x are found: a set of starts fits if each is across between its
  /// release and x after its settle, the earliest due first. With releases in the order of the due times, which earlier
  /// releases make so, leaving out the start whose removal ends the rest the soonest whenever one is late keeps the most
  /// (Kise, Ibaraki and Mine, 1978). Too few for a percentile bound it from below; the mean is at least the integral of the
  /// share of slower swipes over x. Walks are cut into runs of 64 visits, which do not compete with each other.
  package let figures: DelayBound?

  /// - Parameters:
  ///   - plan: The walk.
  ///   - chunks: By index in the feed; `nil` for an item that is not known.
  ///   - link: The link.
  ///   - decodeCost: The cost of decoding.
  ///   - slotCount: The pool's slots.
  package init(
    _ plan: WalkPlan, chunks: (Int) -> ItemChunks?, link: LinkSpec, decodeCost: DecodeCost, slotCount: Int
  ) {
    let timetable = WalkTimetable(plan)
    let times = OracleLink(link)
    let frame = decodeCost.leastFrame.wholeMicroseconds
    let opening = decodeCost.opening.wholeMicroseconds
    var starts: [Int: ItemStart?] = [:]
    var lastStops: [Int: Int] = [:]
    var visits: [Visit] = []
    for (number, stop) in timetable.stops.enumerated() {
      defer { lastStops[stop.index] = number }
      guard let settle = stop.settle else { continue }
      let start = starts[stop.index] ?? chunks(stop.index).flatMap { ItemStart($0) }
      starts[stop.index] = .some(start)
      guard stop.isCounted else { continue }
      let limit = max(timetable.end(of: number) - settle, 0)
      let first = timetable.firstStop(holding: number, slotCount: max(slotCount, 1))
      // An earlier visit may have left the start.
      guard let start, (lastStops[stop.index] ?? -1) < first else {
        visits.append(Visit(settle: settle, limit: limit, alone: 0))
        continue
      }
      let release = timetable.stops[first].time
      let ready = max(
        start.arrival(from: release, over: times) + frame,
        release + start.firstByteTime(over: times) + opening + 2 * frame)
      visits.append(
        Visit(
          settle: settle, limit: limit, alone: min(max(ready - settle, 0), limit),
          release: release + start.firstByteTime(over: times), byteCount: Double(start.byteCount)))
    }
    delays = visits.map { .microseconds($0.alone) }
    figures = JointBound(visits, link: times, decodeTime: frame).figures
  }
}

/// A visit that counts.
private struct Visit {
  let settle: Int64
  /// The longest delay that can be counted.
  let limit: Int64
  /// The delay if everything yields.
  let alone: Int64
  /// When the bytes of the start can begin to cross.
  var release: Int64 = 0
  /// The bytes of the start; 0 if it may be there.
  var byteCount = 0.0
}

/// How many visits can be as fast as a delay, and what follows from that.
private struct JointBound {
  /// Visits in the order of their settles, in runs.
  private let runs: [ArraySlice<Visit>]
  private let visitCount: Int
  private let link: OracleLink
  private let decodeTime: Int64

  private static let runLength = 64
  /// The delays between which the mean is integrated, in microseconds: 10 ms apart at first, then by a quarter more.
  private static let grid: [Int64] = {
    var grid: [Int64] = [0]
    while let last = grid.last, last < 3_600_000_000 { grid.append(last + max(10_000, last / 4)) }
    return grid
  }()

  init(_ visits: [Visit], link: OracleLink, decodeTime: Int64) {
    visitCount = visits.count
    self.link = link
    self.decodeTime = decodeTime
    runs = stride(from: 0, to: visits.count, by: Self.runLength).map {
      visits[$0..<min($0 + Self.runLength, visits.count)]
    }
  }

  var figures: DelayBound? {
    guard visitCount > 0 else { return nil }
    var sum = 0.0
    for (begin, end) in zip(Self.grid, Self.grid.dropFirst()) {
      // Fewer and fewer are slower.
      let count = slowerCount(than: end)
      guard count > 0 else {
        sum += lastStep(from: begin, to: end)
        break
      }
      sum += Double(count) * Double(end - begin)
    }
    return DelayBound(
      mean: .microseconds(Int64(sum / Double(visitCount))), p50: percentile(50), p95: percentile(95))
  }

  // MARK: - Private

  /// The part of the integral in a step at whose end no visit is slower.
  private func lastStep(from begin: Int64, to end: Int64) -> Double {
    var (low, sum) = (begin, 0.0)
    for _ in 0..<4 {
      let middle = (low + end) / 2
      let count = slowerCount(than: middle)
      guard count > 0 else { break }
      sum += Double(count) * Double(middle - low)
      low = middle
    }
    return sum
  }

  /// By nearest rank, as `LatencySummary` has it; rounded down to a microsecond.
  private func percentile(_ percent: Int) -> Duration {
    // As many may be slower.
    let allowed = visitCount - (visitCount * percent + 99) / 100
    guard slowerCount(than: 0) > allowed else { return .zero }
    var (low, high) = (Int64(0), Self.grid[Self.grid.count - 1])
    while high - low > 1 {
      let middle = (low + high) / 2
      if slowerCount(than: middle) > allowed { low = middle } else { high = middle }
    }
    return .microseconds(low)
  }

  /// The least number of visits whose delay is above `delay`.
  private func slowerCount(than delay: Int64) -> Int {
    runs.reduce(0) { $0 + slowerCount(than: delay, in: $1) }
  }

  private func slowerCount(than delay: Int64, in run: ArraySlice<Visit>) -> Int {
    struct Job {
      var release: Double
      let due: Double
      let byteCount: Double
    }
    var count = 0
    var jobs: [Job] = []
    for visit in run where visit.limit > delay {
      if visit.alone > delay {
        count += 1
      } else if visit.byteCount > 0 {
        jobs.append(
          Job(
            release: link.amount(at: visit.release), due: link.amount(at: visit.settle + delay - decodeTime),
            byteCount: visit.byteCount))
      }
    }
    for index in jobs.indices.reversed().dropFirst() {
      jobs[index].release = min(jobs[index].release, jobs[index + 1].release)
    }
    func end(of kept: [Job], without left: Int? = nil) -> Double {
      var end = 0.0
      for (index, job) in kept.enumerated() where index != left {
        end = max(end, job.release) + job.byteCount
      }
      return end
    }
    var kept: [Job] = []
    for job in jobs {
      kept.append(job)
      // A byte is within the precision of the arithmetic.
      guard end(of: kept) > job.due + 1 else { continue }
      let worst = kept.indices.min { end(of: kept, without: $0) < end(of: kept, without: $1) }
      if let worst { kept.remove(at: worst) }
      count += 1
    }
    return count
  }
}

/// What has to be fetched of an item at least before its second frame.
struct ItemStart {
  let manifestByteCount: Int64
  /// Round trips between the manifest and the first segment.
  let playlistCount: Int
  /// Of a rung's first chunk, up to the second frame.
  let byteCount: Int64

  /// Nil for an item without chunks.
  init?(_ chunks: ItemChunks) {
    let counts = chunks.rungs.compactMap { rung in
      rung.chunks.first.map { $0.startByteCount ?? min($0.byteCount, 1) }
    }
    guard let count = counts.min() else { return nil }
    manifestByteCount = chunks.manifestByteCount
    // The initialization segment is asked for together with the first segment, and a file's header comes before it in
    // the same transfer.
    playlistCount = max((chunks.rungs.map(\.headerRequestCount).min() ?? 0) - 1, 0)
    byteCount = count
  }

  /// The requests that follow one another.
  var requestCount: Int { (manifestByteCount > 0 ? 1 : 0) + playlistCount + 1 }

  func firstByteTime(over link: OracleLink) -> Int64 { Int64(requestCount) * link.roundTrip }

  /// When the second frame has come if nothing else crosses the link.
  func arrival(from time: Int64, over link: OracleLink) -> Int64 {
    var time = time
    if manifestByteCount > 0 {
      time = link.end(ofByteCount: manifestByteCount, from: time + link.roundTrip)
    }
    return link.end(ofByteCount: byteCount, from: time + link.roundTrip * Int64(playlistCount + 1))
  }
}

extension DecodeCost {
  /// What a frame takes at least, whatever its codec and size.
  fileprivate var leastFrame: Duration {
    codecs.values.map(\.constant).reduce(others.constant, min)
  }
}
