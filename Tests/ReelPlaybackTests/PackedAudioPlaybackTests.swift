import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelSources
import ReelSimulation
import ReelTestSupport
import Testing

@Suite("Playing packed audio", .hangLimit)
struct PackedAudioPlaybackTests {
  /// Counts the samples, and records the times of the buffers.
  private final class Sound: AudioOutput {
    private let state = Locked([TimedAudio]())

    var all: [TimedAudio] { state.withLock { $0 } }

    func write(_ audio: TimedAudio) { state.withLock { $0.append(audio) } }

    func finish() {}
  }

  @Test(
    "It is heard beside the video, from its beginning to its end", arguments: ["aac", "mp3", "ac3", "ec3"])
  func whole(name: String) async throws {
    let path = "hls-packed/\(name).m3u8"
    let simulation = SimulatedRuntime()
    let stage = try SimulatedStage(path, fetcher: FixtureFetcher(clock: simulation), in: simulation)
    let sound = Sound()
    stage.player.attach(sound)
    stage.begin(rate: 1)
    let end = try await stage.end()
    if case .playedToEnd = end {} else { Issue.record("\(end)") }
    #expect(stage.item.errorLog.isEmpty, "\(stage.item.errorLog.map(\.error))")
    let heard = sound.all
    #expect(try #require(heard.first).time < MediaTime(value: 1, timescale: 10))
    let last = try #require(heard.last)
    #expect(last.time + last.buffer.duration >= MediaTime(value: 29, timescale: 10))
    let sampleCount = heard.reduce(0) { $0 + $1.buffer.frameCount }
    let golden = try Golden("packed-\(name).sound")
    #expect(abs(sampleCount - golden.frames.count * (heard.first?.buffer.frameCount ?? 0)) < 10_000)
    try await stage.close()
  }
}
