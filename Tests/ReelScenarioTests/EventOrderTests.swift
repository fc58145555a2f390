import ReelCore
import ReelPlayback
import ReelSimulation
import ReelTestSupport
import Testing

@Suite("The order of events", .hangLimit)
struct EventOrderTests {
  @Test(
    "A stall is told before its end, whenever a seek, a pause, a stop or another item ends it",
    arguments: 0..<4)
  func stalls(_ act: Int) async throws {
    let gap = try await Moment.isStalled.stage()
    let begin = gap.simulation.stepCount
    try await gap.close()
    for step in (begin - 40)..<(begin + 10) {
      let stage = try await Moment.nearStall(step)
      switch act {
      case 0: _ = stage.seek(to: .zero)
      case 1: stage.player.pause()
      case 2: stage.player.stop()
      default: try stage.load("media/h264-one-frame.mp4")
      }
      stage.network.heal()
      await stage.run(for: .seconds(10))
      var isStalled = false
      for name in stage.eventNames where name == "stalled" || name == "resumed" {
        #expect(isStalled == (name == "resumed"), "step \(step): \(stage.events)")
        isStalled = name == "stalled"
      }
      try await stage.close()
    }
  }

  @Test("The first frame is told first, and the end last and once", arguments: [1, 8, .infinity])
  func firstAndLast(rate: Double) async throws {
    let stage = try Stage(Moment.path)
    stage.player.setRate(rate)
    try await stage.playsOut()
    await stage.run(for: .seconds(10))
    #expect(stage.eventNames == ["firstFrame", "playedToEnd"])
    try await stage.close()
  }

  @Test("A seek is told before the call returns, and only the one that counts")
  func seeks() async throws {
    let stage = try await Moment.hasFirstFrame.stage()
    let seeks = [1.0, 2.0].map { stage.seek(to: MediaTime(seconds: $0)) }
    try await stage.run { seeks.allSatisfy(\.isOver) }
    await stage.run(for: .seconds(1))
    #expect(stage.eventNames == ["firstFrame", "seekDone"])
    try await stage.close()
  }
}

extension Moment {
  /// A player whose second segment is held back, after so many steps.
  static func nearStall(_ step: Int) async throws -> Stage {
    let stage = try Stage(network: Network { $0.hasSuffix("segment-1.m4s") }) {
      $0.retryPolicy = ItemRetryPolicy(attempts: 3, baseDelay: .seconds(4), maximumDelay: .seconds(4))
    }
    try stage.load(path)
    stage.player.play()
    await stage.run(untilStep: step)
    return stage
  }
}
