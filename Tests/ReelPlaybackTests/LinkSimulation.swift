import ReelCore
import ReelReading

/// A player on a link, in steps of 10 ms: it loads segment after segment up to its target, plays what it has, and
/// asks an adaptation at each segment boundary. Media of a segment can be played as it arrives.
struct LinkSimulation {
  struct Result {
    /// By segment, the index of its rung.
    var rungs: [Int] = []
    /// When each segment was begun, in seconds.
    var startTimes: [Double] = []
    /// When the presentation came to stand still, in seconds.
    var stallTimes: [Double] = []

    var switchCount: Int { zip(rungs, rungs.dropFirst()).count { $0 != $1 } }

    func rungs(from time: Double) -> [Int] {
      zip(startTimes, rungs).filter { $0.0 >= time }.map(\.1)
    }
  }

  /// Bits per second.
  var ladder = [300_000, 800_000, 1_600_000, 3_000_000, 6_000_000]
  var segmentSeconds = 2.0
  var targetSeconds = 10.0
  var latencySeconds = 0.05
  var rate = 1.0
  var peakBitRate: Int?
  /// How often a transfer that is under way is measured; nil for only at its end.
  var sampleSeconds: Double?
  /// Bits per second at a time in seconds.
  var link: (Double) -> Double

  var candidates: [RungCandidate] {
    ladder.enumerated().map { RungCandidate(index: $0, id: "r\($0)", bitsPerSecond: $1) }
  }

  func run(_ adaptation: inout some RungAdaptation, seconds: Double) -> Result {
    var result = Result()
    let step = 0.01
    var buffered = 0.0
    var isPlaying = false
    var hasPlayed = false
    var isFilling = true
    var current: Int?
    // Of the segment that is being loaded.
    var remainingBits = 0.0
    var sampledBits = 0.0
    var sampledSeconds = 0.0
    var waiting = 0.0
    var latency: Double?
    for tick in 0..<Int(seconds / step) {
      let now = Double(tick) * step
      if buffered >= targetSeconds { isFilling = false }
      if buffered < targetSeconds * 0.75 { isFilling = true }
      if remainingBits <= 0, isFilling {
        let state = AdaptationState(
          current: current, buffered: .seconds(buffered), bufferTarget: .seconds(targetSeconds),
          segmentDuration: .seconds(segmentSeconds), rate: rate, isRebuffering: hasPlayed && !isPlaying,
          now: .seconds(now), peakBitRate: peakBitRate)
        let chosen = adaptation.choose(among: candidates, state).index
        current = chosen
        result.rungs.append(chosen)
        result.startTimes.append(now)
        remainingBits = Double(ladder[chosen]) * segmentSeconds
        waiting = latencySeconds
        latency = latencySeconds
      }
      if remainingBits > 0, let current {
        sampledSeconds += step
        if waiting > 0 {
          waiting -= step
        } else {
          let bits = min(link(now) * step, remainingBits)
          remainingBits -= bits
          sampledBits += bits
          buffered += bits / Double(ladder[current])
        }
        if remainingBits <= 0 || sampledSeconds >= sampleSeconds ?? .infinity {
          adaptation.recordTransfer(
            TransferSample(
              byteCount: Int64(sampledBits / 8), duration: .seconds(sampledSeconds),
              latency: latency.map { .seconds($0) }, endedAt: .seconds(now)))
          latency = nil
          sampledBits = 0
          sampledSeconds = 0
        }
      }
      if isPlaying {
        buffered -= step * rate
        if buffered <= 0 {
          buffered = 0
          isPlaying = false
          result.stallTimes.append(now)
        }
      } else if buffered >= min((hasPlayed ? 1.5 : 0.5) * rate, targetSeconds) {
        isPlaying = true
        hasPlayed = true
      }
    }
    return result
  }
}
