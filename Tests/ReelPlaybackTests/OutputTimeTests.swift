import ReelCore
import ReelTestSupport
import Testing

@testable import ReelPlayback

@Suite("The output time of frames and audio", .hangLimit)
struct OutputTimeTests {
  @Test("It continues over seeks, forward and back", arguments: [1.0, .infinity])
  func seek(rate: Double) async throws {
    let stage = try SimulatedStage("hls-fmp4/master.m3u8")
    let outputs = try StepWitness(of: stage)
    stage.begin(rate: rate)
    try await stage.run { stage.recording.all.count >= 20 }
    #expect(try await stage.seek(to: MediaTime(value: 231, timescale: 100)))
    let (screen, count) = (outputs.screen, outputs.screen.all.withLock { $0.count })
    try await stage.run { screen.all.withLock { $0.count } >= count + 10 }
    #expect(try await stage.seek(to: MediaTime(value: 4, timescale: 10)))
    try await stage.end()
    try await stage.close()
    try outputs.expectStep()
    // A seek leaves no hole: less than a frame and the audio that was ahead.
    let frames = screen.all.withLock { $0 }
    for (frame, next) in zip(frames, frames.dropFirst()) {
      #expect((next.outputTime - frame.outputTime).seconds < 0.15, "\(frame) \(next)")
    }
  }

  @Test("It continues over a loop with longer audio", arguments: [1.0, .infinity])
  func loop(rate: Double) async throws {
    let stage = try SimulatedStage("hls-fmp4/master.m3u8")
    stage.player.actionAtItemEnd = .loop
    let outputs = try StepWitness(of: stage)
    stage.begin(rate: rate)
    try await stage.run { stage.eventNames.count(where: { $0 == "looped" }) >= 2 }
    stage.player.actionAtItemEnd = .pause
    try await stage.end()
    try await stage.close()
    try outputs.expectStep()
    // Each iteration begins at a whole number of frames.
    for frame in outputs.screen.all.withLock({ $0 }) {
      let place = frame.outputTime.seconds * 30
      #expect(abs(place - place.rounded()) < 0.001, "\(frame)")
    }
  }

  @Test("A hole of hours is one of a minute, in both")
  func longHole() async throws {
    var timeline = OutputTimeline()
    func place(_ seconds: Int64) async throws -> MediaTime {
      let placed = Locked(MediaTime.zero)
      let copy = Locked(timeline)
      try await withFrames(of: "media/h264.ts", count: 1) { frame in
        let time = copy.withLock {
          $0.place(frame, at: MediaTime(value: seconds, timescale: 1), shift: .zero)
        }
        placed.withLock { $0 = time }
      }
      timeline = copy.withLock { $0 }
      return placed.withLock { $0 }
    }
    #expect(try await place(10) == .zero)
    #expect(try await place(50) == MediaTime(value: 40, timescale: 1))
    let end = MediaTime(value: 40, timescale: 1) + MediaTime(value: 1, timescale: 30)
    #expect(try await place(18_000) == end + OutputTimeline.longestHole)
    #expect(try await place(18_001) == end + MediaTime(value: 61, timescale: 1))
  }
}
