import Foundation
import ReelCore
import ReelFFmpeg
import ReelPool
import ReelLab
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelPlayback
import ReelSources

@Suite("Audio that does not arrive", .hangLimit)
struct MissingAudioTests {
  private static let path = "hls-fmp4/master.m3u8"

  /// Counts the samples handed out, and records the end of the audio.
  private final class Sound: AudioOutput {
    private let state = Locked((count: 0, end: MediaTime.zero))

    var sampleCount: Int { state.withLock { $0.count } }
    var end: MediaTime { state.withLock { $0.end } }

    func write(_ audio: TimedAudio) {
      state.withLock { $0 = ($0.count + audio.buffer.frameCount, audio.time + audio.buffer.duration) }
    }

    func finish() {}
  }

  @Test(
    "The frame waits for sound of its own for a time, and goes on without it",
    arguments: ["index.m3u8", "init.mp4", "segment-0.m4s", "segment-1.m4s"], [1.0, .infinity])
  func givesUp(name: String, rate: Double) async throws {
    let clip = try StressClip(Self.path, golden: "hls-fmp4-high", clock: .fromZero)
    let simulation = SimulatedRuntime()
    let fetcher = FixtureFetcher(clock: simulation) { request, _ in
      request.url.path.hasSuffix("audio/\(name)") ? .never : .none
    }
    let stage = try SimulatedStage(Self.path, fetcher: fetcher, in: simulation)
    stage.begin(rate: rate)
    let end = try await stage.end()
    if case .playedToEnd = end {} else { Issue.record("\(end)") }
    #expect(stage.recording.all.last?.md5 == clip.expected.last?.md5)
    let errors = stage.item.errorLog.map(\.error)
    #expect(errors.contains { $0.kind == .timedOut && $0.reason.contains("audio") }, "\(errors)")
    // 10 s of patience, and 3 s of media.
    #expect(simulation.now >= .seconds(10) && simulation.now < .seconds(16), "\(simulation.now)")
    try await stage.close()
    // What waited for it has ended.
    #expect(fetcher.heldCount == 0)
  }

  @Test("Sound that comes slowly, but comes, is waited for")
  func slow() async throws {
    let simulation = SimulatedRuntime()
    let fetcher = FixtureFetcher(chunkByteCount: 500, clock: simulation) { request, _ in
      request.url.path.contains("audio/") ? .slow(.milliseconds(500)) : .none
    }
    let stage = try SimulatedStage(Self.path, fetcher: fetcher, in: simulation)
    stage.begin(rate: .infinity)
    try await stage.end()
    #expect(stage.item.errorLog.isEmpty)
    try await stage.close()
  }

  @Test(
    "On a busy machine, late audio is not given up but heard", arguments: [1.0, .infinity],
    [4, 12])
  func busyMachine(rate: Double, seconds: Int) async throws {
    let clip = try StressClip(Self.path, golden: "hls-fmp4-high", clock: .fromZero)
    let simulation = SimulatedRuntime()
    let stage = try SimulatedStage(Self.path, fetcher: FixtureFetcher(clock: simulation), in: simulation) {
      $0.runtime = LateRuntime(simulation, lateness: .seconds(seconds))
    }
    let sound = Sound()
    stage.player.attach(sound)
    stage.begin(rate: rate)
    let end = try await stage.end()
    if case .playedToEnd = end {} else { Issue.record("\(end)") }
    #expect(stage.item.errorLog.isEmpty)
    #expect(clip.indices(of: stage.recording.all) == Array(clip.expected.indices))
    // All of it: three seconds, within one AAC frame.
    #expect(abs(sound.sampleCount - 3 * 48000) <= 2048, "\(sound.sampleCount) samples")
    #expect(abs(sound.end.seconds - 3) < 0.05)
    try await stage.close()
  }
}
