import ArgumentParser
import Foundation
import ReelCore
import ReelPlayback
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelCommand
import ReelSources

@Suite("A source of reel play", .hangLimit)
struct PlayJobTests {
  struct Played {
    let verdict: PlayJob.Verdict
    let events: [PlayerEvent]
  }

  /// Plays a fixture in simulated time, where the presenter shows several frames before any task runs.
  static func play(
    _ path: String, fetcher: FixtureFetcher = FixtureFetcher(), _ arguments: String...
  ) async throws -> Played {
    try await play(path, arguments) { _ in fetcher }
  }

  private static func play(
    _ path: String, _ arguments: [String], fetcher makeFetcher: (SimulatedRuntime) -> FixtureFetcher
  ) async throws -> Played {
    let simulation = SimulatedRuntime()
    let fetcher = makeFetcher(simulation)
    var configuration = PlayerConfiguration()
    simulation.apply(to: &configuration)
    configuration.retryPolicy = ItemRetryPolicy(attempts: 1, baseDelay: .milliseconds(1))
    let command = try PlayCommand.parse(arguments + [path])
    let source = try MediaSource(argument: "http://fixtures.test/\(path)")
    let job = SourceRun.Job(
      parsed: .success(source), text: path, names: nil, folder: ".", stem: "play", printsText: false,
      timeout: command.options.timeout, overwrites: false)
    let recorder = PlayRecorder()
    let play = PlayJob(
      command, job, assertions: [], configuration: configuration, fetcher: fetcher,
      report: PlayReport(.nothing, recorder: recorder), logger: silentLogger)
    let verdict = try await simulation.run { await play.run() }
    let events = recorder.recording.events.compactMap { record in
      if case .player(let event) = record.event { event } else { nil }
    }
    return Played(verdict: verdict, events: events)
  }

  @Test(
    "A loop is reported if its first frame is shown before the end of --duration, and is in the summary",
    arguments: [("0.5", 0), ("1", 0), ("1.05", 1), ("2", 1), ("2.05", 2), ("2.1", 2), ("2.5", 2)])
  func loops(duration: String, count: Int) async throws {
    let played = try await Self.play(
      "media/h264-faststart.mp4", "--rate", "max", "--loop", "--duration", duration)
    #expect(played.verdict.summary.ended == .duration)
    #expect(played.events.count { if case .looped = $0 { true } else { false } } == count)
    #expect(played.verdict.summary.loopGapsMs.count == count)
  }

  @Test("Failures and retries are reported before the failure that ends playback")
  func failures() async throws {
    let fetcher = FixtureFetcher { request, _ in
      request.url.path.hasSuffix("high/segment-1.ts") || request.url.path.hasSuffix("low/segment-1.ts")
        ? .error(ReelError(.network, "the connection was lost")) : .none
    }
    let played = try await Self.play("hls-ts/low/index.m3u8", fetcher: fetcher, "--rate", "max")
    #expect(played.verdict.summary.ended == .failed)
    let names = played.events.map { String("\($0)".prefix { $0 != "(" }) }
    #expect(names.last == "failed" && names.contains("firstFrame") && names.contains("retry"), "\(names)")
  }

  @Test("A server that answers in time may play for longer than the time limit; one that keeps still may not")
  func timeLimit() async throws {
    let arguments = ["--loop", "--duration", "4", "--timeout", "3"]
    let long = try await Self.play("media/h264.ts", arguments) { _ in FixtureFetcher() }
    #expect(long.verdict.summary.ended == .duration)
    #expect((3990.0..<5000).contains(long.verdict.summary.wallMs))
    let still = try await Self.play("media/h264.ts", arguments) { _ in FixtureFetcher { _, _ in .never } }
    #expect(still.verdict.failure?.kind == .timedOut)
    #expect(still.verdict.summary.wallMs == 3000)
  }
  @Test(
    "Media that trickles in is given up, although no single wait is too long; media that is merely slow plays to its end",
    arguments: [(320, true), (1600, false)])
  func trickle(bytesPerStep: Int, isGivenUp: Bool) async throws {
    let played = try await Self.play("media/h264-long.mp4", []) { simulation in
      FixtureFetcher(chunkByteCount: bytesPerStep, clock: simulation) { _, _ in .slow(.milliseconds(100)) }
    }
    #expect(played.verdict.summary.stalls.count > 1)
    #expect(played.verdict.summary.ended == (isGivenUp ? .failed : .playedToEnd))
    #expect(played.verdict.failure?.kind == (isGivenUp ? .timedOut : nil))
    if isGivenUp {
      #expect(played.verdict.failure?.reason.hasPrefix("media arrives too slowly: ") == true)
      #expect(played.verdict.summary.wallMs < 90_000)
    }
  }
}
