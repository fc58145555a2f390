import Foundation
import ReelCore
import ReelPlayback
import ReelSimulation
import ReelTestSupport
import Testing

@Suite("Seeks", .hangLimit)
struct SeekTests {
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
