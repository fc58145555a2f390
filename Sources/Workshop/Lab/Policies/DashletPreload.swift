internal import ReelPlayback
package import ReelPool

/// Orders preloads by the rebuffering that is expected without them.
///
/// After Li, Xie, Netravali and Jamieson, [Dashlet: Taming Swipe Uncertainty for Robust Short Video
/// Streaming](https://www.usenix.org/conference/nsdi23/presentation/li-zhuqi), NSDI 2023. Constants that the
/// paper does not state are those of the authors' [code](https://github.com/PrincetonUniversity/Dashlet).
///
/// 1. **Play start.** The time at which playback of an item begins is the sum of the watch times of the items
///    before it, so its distribution is the convolution of theirs. A chunk inside the item starts later by
///    its offset, with the probability that a viewer gets that far (`PoolSituation.Item.retention`).
/// 2. **Expected rebuffering.** A chunk that arrives at the time T delays playback by T - t if it is played
///    at t < T. Only chunks for which the expected delay is above 1.6 ms at the end of the horizon of 25 s
///    are candidates.
/// 3. **Order.** Greedily, the next chunk is the one with the largest expected delay if it arrived only after
///    two equal shares of the horizon, but not before 10 s; chunks of one item stay in their order.
/// 4. **Bit rate.** The candidates share the capacity of the link within the horizon. A chunk whose expected
///    delay within 5 s is above the threshold gets two thirds of that, because it must arrive soon. The rung
///    is the highest below.
///
/// In Reel:
/// - A chunk is a segment, or 1 s of media before its duration is known and for media files.
/// - Loading is by items in order of rank, the current one first. The current item's buffer is limited to its
///   chunks before the first neighbour's, and a neighbour's target to its chunks before the first of the next
///   neighbour. The pool requests a new plan when one of them is loaded, and every 500 ms.
/// - A neighbour that has reached its target keeps its slot.
/// - If the feed states no retention, viewers leave at a constant rate: the mean of this viewer's watch
///   times, with one of 10 s before the first.
///
/// Left out: swipes back, for which the paper has no model either, so the item behind has no slot; the sizes
/// of single chunks, which are replaced by the bit rate of the rung; the search over all combinations of bit
/// rates, for which the authors' code has rule 4 too.
package struct DashletPreload: PreloadPlanning, Hashable {
  private static let horizon = 25.0
  private static let dangerZone = 5.0
  private static let leastLookahead = 10.0
  /// The reward of the lowest bit rate over the penalty of a second of rebuffering, in the authors' code.
  private static let threshold = 1143.0 / 700_000
  /// The expected delay below which a chunk gets no place in the order.
  private static let negligible = 0.000_01
  /// The step of the distributions, in seconds.
  private static let step = 0.5
  private static let reviewInterval = Duration.milliseconds(500)

  /// The policy `dashlet`.
  package init() {}

  package var description: String { "dashlet" }

  package func plan(in situation: PoolSituation) -> PreloadPlan {
    let videos = Self.videos(in: situation)
    guard let current = videos.first else { return PreloadPlan() }
    let ends = videos.map { video in
      var end = video.media.firstMissing
      var chunk = end
      while video.media.hasChunk(chunk), video.media.offset(of: chunk) < Self.horizon {
        if video.delay(of: chunk, at: Self.horizon) > Self.threshold { end = chunk + 1 }
        chunk += 1
      }
      return end
    }
    let candidateCount = zip(videos, ends).reduce(0) { $0 + $1.1 - $1.0.media.firstMissing }
    let order = Self.order(videos, ends: ends, count: candidateCount)
    var plan = PreloadPlan(reviewInterval: Self.reviewInterval)
    let rates = videos.map { Self.peakBitRate(of: $0, candidateCount, situation.throughput?.mean) }
    let ahead = order.prefix { $0 == 0 }.count
    plan.current = LoadingBounds(
      forwardBufferDuration: current.media.buffer(before: current.media.firstMissing + ahead),
      peakBitRate: rates[0])
    plan.neighbours = Self.neighbours(of: order, videos).map { index, count in
      let media = videos[index].media
      return PreloadPlan.Neighbour(
        distance: media.item.distance,
        target: PreloadTarget(
          stage: .buffered, bufferDuration: media.buffer(before: media.firstMissing + count),
          peakBitRate: rates[index]))
    }
    return plan
  }

  // MARK: - Private

  /// An item, and the time at which its playback begins.
  private struct Video {
    let media: ChunkedItem
    let model: WatchModel
    /// The probabilities that it begins in each step of the horizon.
    let start: [Double]
    /// The time for which it has been watched, in seconds.
    let watched: Double

    /// Returns the probability that a chunk is played once the item is.
    func probability(of chunk: Int) -> Double { model.survival(media.offset(of: chunk), after: watched) }

    /// Returns the expected delay of playback if a chunk arrives at `time`, in seconds.
    func delay(of chunk: Int, at time: Double) -> Double {
      let rest = time - media.offset(of: chunk)
      guard rest > 0 else { return 0 }
      var sum = 0.0
      for (index, share) in start.enumerated() {
        let late = rest - Double(index) * DashletPreload.step
        guard late > 0 else { break }
        sum += share * late
      }
      return sum * probability(of: chunk)
    }
  }

  private static func videos(in situation: PoolSituation) -> [Video] {
    let steps = Int(horizon / step)
    var start = [Double](repeating: 0, count: steps)
    start[0] = 1
    var videos: [Video] = []
    for item in situation.itemsAhead {
      let model = WatchModel(item, history: situation.history)
      let watched = item.distance == 0 ? situation.watchedDuration.inSeconds : 0
      videos.append(Video(media: ChunkedItem(item), model: model, start: start, watched: watched))
      let survivals = (0...steps).map { model.survival(Double($0) * step, after: watched) }
      let leaving = (0..<steps).map { max(survivals[$0] - survivals[$0 + 1], 0) }
      var next = [Double](repeating: 0, count: steps)
      for (begin, share) in start.enumerated() where share > 0 {
        for length in 0..<(steps - begin) { next[begin + length] += share * leaving[length] }
      }
      start = next
    }
    return videos
  }

  /// Returns the chunks in order, each as the index of its item in `videos`.
  private static func order(_ videos: [Video], ends: [Int], count: Int) -> [Int] {
    guard count > 0 else { return [] }
    let time = max(2 * horizon / Double(count) + 1, leastLookahead)
    var heads = videos.map(\.media.firstMissing)
    var delays = videos.indices.map { heads[$0] < ends[$0] ? videos[$0].delay(of: heads[$0], at: time) : 0 }
    var order: [Int] = []
    while order.count < count {
      var best = 0
      for index in delays.indices where delays[index] > delays[best] { best = index }
      guard delays[best] > negligible else { break }
      order.append(best)
      heads[best] += 1
      delays[best] = heads[best] < ends[best] ? videos[best].delay(of: heads[best], at: time) : 0
    }
    return order
  }

  /// Returns the neighbours by their first chunk in the order, each with the number of chunks to load; then
  /// those that are loaded already.
  private static func neighbours(of order: [Int], _ videos: [Video]) -> [(index: Int, chunkCount: Int)] {
    var found: [(index: Int, chunkCount: Int)] = []
    for index in order where index > 0 {
      if let place = found.firstIndex(where: { $0.index == index }) {
        if place == found.count - 1 { found[place].chunkCount += 1 }
      } else {
        found.append((index, 1))
      }
    }
    for index in videos.indices.dropFirst()
    where videos[index].media.item.stage > .notLoaded && !found.contains(where: { $0.index == index }) {
      found.append((index, 0))
    }
    return found
  }

  /// Returns nil if the throughput is not known.
  private static func peakBitRate(of video: Video, _ candidateCount: Int, _ throughput: Double?) -> Int? {
    guard let throughput else { return nil }
    var rate = throughput
    if candidateCount > 0 {
      rate = horizon * throughput / Double(candidateCount) / video.media.length
      if video.delay(of: video.media.firstMissing, at: dangerZone) > threshold { rate /= 1.5 }
    }
    return video.media.peakBitRate(atMost: rate)
  }
}
