internal import Foundation
internal import ReelPlayback
package import ReelPool

/// Preloads media that is likely enough to be watched, up to a maximum buffer that depends on retention and
/// throughput.
///
/// After Zhou, Ban, Zhao, Guo and Yu, *PDAS: Probability-Driven Adaptive Streaming for Short Video*, which
/// won the Short Video Streaming Challenge of ACM Multimedia 2022 (pages 7021 to 7025 of the proceedings).
/// The paper names three parts: a model of the probability that a chunk is watched; a maximum buffer from
/// probability, playing order and throughput, at which downloads stop; and a bit rate that maximises the
/// expected score. Its code is not public, so the formulas below are Reel's. They are derived from the score
/// of the [challenge](https://github.com/AItransCompetition/Short-Video-Streaming-Challenge): the bit rate in
/// Mbit/s for each second that is played, minus the change of bit rate between chunks, minus 1.85 for each
/// second of rebuffering, minus 0.5 for each Mbit that is fetched.
///
/// 1. **Probability.** P is the share of viewers who watch a chunk among those who have watched so far
///    (`PoolSituation.Item.retention`); for neighbours, among all viewers who begin.
/// 2. **Maximum buffer.** With the throughput C, a chunk of s Mbit that is fetched only when it is needed
///    costs s/C seconds of rebuffering. Fetching it ahead is worth that if P × 1.85 × s/C ≥ (1 - P) × 0.5 ×
///    s, which is P ≥ 0.5 C / (1.85 + 0.5 C), with C in Mbit/s. An item's buffer ends before its first chunk
///    below this. The current item always gets a chunk, and as much media as plays while a chunk arrives;
///    neighbours always get their first chunk.
/// 3. **Order.** The current item up to its maximum buffer, then the next four in the direction of travel,
///    each up to its own. When all are loaded, nothing more is.
/// 4. **Bit rate.** The rung with the best expected score over the next five chunks. Rebuffering is counted
///    from the media that is buffered; for a neighbour, from the mean time until it is reached.
///
/// C is the throughput that is exceeded five times out of six, in place of the challenge's estimate by the
/// harmonic mean and the largest error. As long as nothing was measured, chunks need a probability of 0.65,
/// as in the challenge's example `fix_preload`, and the player chooses the rung.
///
/// In Reel, a chunk is a segment, or 1 s of media before its duration is known and for media files. The pool
/// requests a new plan when something is loaded, and every 500 ms, the challenge's pause.
///
/// Left out: swipes back, which the challenge does not have, so the item behind has no slot; the sizes of
/// single chunks, which are replaced by the bit rate of the rung. If the feed states no retention, viewers
/// leave at a constant rate: the mean of this viewer's watch times, with one of 10 s before the first.
package struct PDASPreload: PreloadPlanning, Hashable {
  private static let rebufferingWeight = 1.85
  private static let trafficWeight = 0.5
  private static let defaultProbability = 0.65
  /// The number of items ahead in the challenge.
  private static let neighbourLimit = 4
  private static let chunkLookahead = 5
  /// The longest buffer, in seconds; no video of the challenge is longer.
  private static let longestBuffer = 60.0
  private static let reviewInterval = Duration.milliseconds(500)

  /// The policy `pdas`.
  package init() {}

  package var description: String { "pdas" }

  package func plan(in situation: PoolSituation) -> PreloadPlan {
    // In Mbit/s.
    let rate = situation.throughput.map { $0.rate(atDeviations: -1) / 1e6 }
    let least = rate.map(Self.leastProbability) ?? Self.defaultProbability
    var plan = PreloadPlan(reviewInterval: Self.reviewInterval)
    // The time until the item is reached, in seconds.
    var lead = 0.0
    for item in situation.itemsAhead.prefix(1 + Self.neighbourLimit) {
      let media = ChunkedItem(item)
      let model = WatchModel(item, history: situation.history)
      let watched = item.distance == 0 ? situation.watchedDuration.inSeconds : 0
      let peak = rate.flatMap { Self.peakBitRate(of: media, model, watched: watched, lead: lead, rate: $0) }
      let needed = Self.neededChunkCount(media, peakBitRate: peak, rate: rate)
      var end = media.firstMissing
      while media.hasChunk(end), media.offset(of: end) < Self.longestBuffer {
        let isNeeded = item.distance == 0 ? media.offset(of: end) < Double(needed) * media.length : end == 0
        guard isNeeded || model.survival(media.offset(of: end), after: watched) >= least else { break }
        end += 1
      }
      let duration = media.buffer(before: end)
      if item.distance == 0 {
        plan.current = LoadingBounds(forwardBufferDuration: duration, peakBitRate: peak)
      } else {
        plan.neighbours.append(
          PreloadPlan.Neighbour(
            distance: item.distance,
            target: PreloadTarget(stage: .buffered, bufferDuration: duration, peakBitRate: peak)))
      }
      lead += model.meanRest(after: watched, limit: Self.longestBuffer)
    }
    return plan
  }

  /// Returns the probability from which fetching a chunk ahead is worth its bytes.
  ///
  /// - Parameter rate: The throughput in Mbit/s.
  static func leastProbability(rate: Double) -> Double {
    trafficWeight * rate / (rebufferingWeight + trafficWeight * rate)
  }

  // MARK: - Private

  /// Returns the number of chunks that the current item always has ahead: one, or as many as play while one
  /// arrives.
  private static func neededChunkCount(_ media: ChunkedItem, peakBitRate: Int?, rate: Double?) -> Int {
    let rungs = media.item.rungs
    let loaded = rungs.last { $0.id == media.item.rung } ?? rungs.last
    guard let rate, rate > 0, let bitRate = peakBitRate ?? loaded?.bitRate else { return 1 }
    return min(max(Int(clamping: (Double(bitRate) / 1e6 / rate).rounded(.up)), 1), chunkLookahead)
  }

  /// Returns nil if there is no choice.
  private static func peakBitRate(
    of media: ChunkedItem, _ model: WatchModel, watched: Double, lead: Double, rate: Double
  ) -> Int? {
    let rungs = media.item.rungs.filter { $0.bitRate > 0 }
    guard rungs.count > 1, rate > 0 else { return nil }
    let chunks = (media.firstMissing..<media.firstMissing.addingClamped(chunkLookahead))
      .filter(media.hasChunk)
    let last = rungs.first { $0.id == media.item.rung }.map { Double($0.bitRate) / 1e6 }
    var best: (bitRate: Int, score: Double)?
    for rung in rungs {
      let bits = Double(rung.bitRate) / 1e6
      var score = last.map { -abs(bits - $0) } ?? 0
      var arrival = 0.0
      var delay = 0.0
      for chunk in chunks {
        let probability = model.survival(media.offset(of: chunk), after: watched)
        arrival += bits * media.length / rate
        let late = max(arrival - lead - media.offset(of: chunk) - delay, 0)
        delay += late
        score +=
          probability * (bits * media.length - rebufferingWeight * late)
          - trafficWeight * bits * media.length
      }
      if best.map({ score > $0.score }) ?? true { best = (rung.bitRate, score) }
    }
    return best?.bitRate
  }
}
