import Foundation
import ReelCore
import ReelPlayback
import ReelSimulation
import ReelTestSupport
import Testing

@Suite("Seeks", .hangLimit)
struct SeekTests {
  @Test(
    "What follows a seek is whole in media of each kind, however much was loaded when it was made",
    arguments: try StressClip.all(), 0..<4)
  func whole(_ clip: StressClip, earlierSeeks: Int) async throws {
    let stage = try Stage(clip.path)
    stage.item.preferredForwardBufferDuration = .milliseconds(earlierSeeks % 2 == 0 ? 300 : 60_000)
    try await stage.run(untilShown: 1)
    try await Self.expectWhole(stage, clip, afterSeeks: earlierSeeks + 1, seed: earlierSeeks)
    try await stage.close()
  }

  @Test("A server that fails now and then is held out against, in any place", arguments: 1...6)
  func failingServer(seed: Int) async throws {
    let clip = try StressClip.all()[0]
    let stage = try Stage(
      clip.path,
      fault: { _, number in
        var random = SplitMix(seed: seed * 1000 + number)
        return switch random.next(below: 6) {
        case 0: .error(ReelError(.server, "503", status: 503))
        case 1: .cut(random.next(below: 9000))
        case 2: .delay(.milliseconds(2))
        default: .none
        }
      },
      configure: {
        $0.retryPolicy = ItemRetryPolicy(
          attempts: 40, baseDelay: .microseconds(100), maximumDelay: .milliseconds(1))
      })
    try await Self.expectWhole(stage, clip, afterSeeks: 12, seed: seed)
    #expect(stage.player.statistics.damagedFrameCount == 0)
    try await stage.close()
  }

  /// Seeks to some places, plays on from the last, and expects each frame from there.
  private static func expectWhole(
    _ stage: Stage, _ clip: StressClip, afterSeeks count: Int, seed: Int
  ) async throws {
    var random = SplitMix(seed: seed)
    let last = clip.expected[clip.expected.count - 1].time.seconds
    var (start, mark) = (0, 0)
    for _ in 0..<count {
      let time = MediaTime(seconds: last * Double(random.next(below: 1000)) / 1000)
      let seek = stage.seek(to: time)
      try await stage.run("a seek in \(clip.path)") { seek.isOver }
      #expect(try seek.result())
      (start, mark) = (clip.index(at: time), seek.mark)
    }
    stage.player.setRate(.infinity)
    try await stage.playsOut()
    #expect(clip.indices(of: stage.shown[mark...]) == Array(start..<clip.expected.count), "from \(start)")
  }

  @Test(
    "Into a gap, a seek shows a frame beside it, and what follows is shown once", arguments: [1.0, 1.5, 1.99])
  func gap(seconds: Double) async throws {
    let frames = try Moment.frames()
    let stage = try Stage(
      "hls-fmp4/high/index.m3u8",
      fault: { request, _ in
        request.url.path.hasSuffix("segment-1.m4s") ? .error(ReelError(.server, "404", status: 404)) : .none
      })
    try await stage.run(untilShown: 1)
    let seek = stage.seek(to: MediaTime(seconds: seconds))
    try await stage.run { seek.isOver }
    #expect(try seek.result())
    #expect([frames[29], frames[60]].contains(stage.shown.last))
    stage.player.play()
    try await stage.playsOut()
    let rest = stage.shown[seek.mark...].drop { $0 == frames[29] }
    #expect(Array(rest) == Array(frames[60...]))
    try await stage.close()
  }

  @Test(
    "A change of rung during a seek shows each frame once, of the one rung or the other", arguments: 0..<30)
  func rung(steps: Int) async throws {
    let high = try Moment.frames()
    let low = try StressClip(Moment.path, golden: "hls-fmp4-low", clock: .fromZero).expected
    let stage = try Stage(Moment.path)
    stage.item.preferredForwardBufferDuration = .milliseconds(600)
    stage.player.play()
    try await stage.run(untilShown: 5)
    let seek = stage.seek(to: high[50].time)
    await stage.run(untilStep: stage.simulation.stepCount + steps)
    stage.item.preferredPeakBitRate = 400_000
    try await stage.run { seek.isOver }
    #expect(try seek.result())
    try await stage.playsOut()
    let shown = Array(stage.shown[seek.mark...])
    #expect(shown.count == 40)
    for (index, frame) in shown.enumerated() {
      #expect(frame == high[50 + index] || frame == low[50 + index], "frame \(50 + index)")
    }
    #expect(shown.last == low.last)
    try await stage.close()
  }
}
