import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelSources

@Suite("Segments that are not what they should be", .hangLimit)
struct DamagedSegmentTests {
  /// What became of a presentation one of whose segments is another.
  private struct Outcome {
    let shown: [Shown]
    let events: [PlayerEvent]
    let errors: [ErrorLogEntry]

    var missed: [(start: MediaTime, error: ReelError)] {
      events.compactMap { event in
        if case .segmentMissed(let start, _, let error) = event { (start, error) } else { nil }
      }
    }
  }

  private func play(
    _ clip: StressClip, readsAhead: Bool, segment: String, is bytes: [UInt8]
  ) async throws -> Outcome {
    let fetcher = FixtureFetcher { request, _ in
      request.url.lastPathComponent == segment ? .bytes(bytes) : .none
    }
    let stage = try SimulatedStage(clip.path, fetcher: fetcher)
    stage.begin(rate: readsAhead ? .infinity : 8)
    try await stage.end()
    let events = stage.events
    try await stage.close()
    return Outcome(shown: stage.recording.all, events: events, errors: stage.item.errorLog)
  }

  /// Everything but the frames of the second segment, of three of a second each, was shown, and it was named.
  private func expectMissing(_ outcome: Outcome, _ clip: StressClip, named name: String) {
    let expected = clip.expected.filter { $0.time.seconds < 0.999 || $0.time.seconds > 1.999 }
    #expect(expected.count < clip.expected.count)
    #expect(clip.indices(of: outcome.shown) == clip.indices(of: expected))
    #expect(outcome.missed.count == 1)
    #expect(outcome.missed.first?.start.seconds == 1)
    #expect(outcome.missed.first?.error.kind == .badMedia)
    #expect(outcome.missed.first?.error.location?.hasSuffix(name) == true)
    #expect(outcome.errors.contains { $0.error.location?.hasSuffix(name) == true })
    if case .playedToEnd? = outcome.events.last {} else { Issue.record("\(outcome.events)") }
  }

  @Test(
    "A segment of fragmented MP4 that is cut off before its media is left out alone",
    arguments: ["styp", "moof", "traf", "trun"], [true, false])
  func cutInIndex(_ box: String, readsAhead: Bool) async throws {
    let clip = try StressClip("hls-fmp4/high/index.m3u8", golden: "hls-fmp4-high", clock: .fromZero)
    let segment = try Fixtures.bytes("hls-fmp4/high/segment-1.m4s")
    let offset = try #require(segment.firstRange(of: Array(box.utf8))).lowerBound
    let outcome = try await play(
      clip, readsAhead: readsAhead, segment: "segment-1.m4s", is: Array(segment.prefix(offset + 2)))
    expectMissing(outcome, clip, named: "segment-1.m4s")
  }

  @Test("A segment of fragmented MP4 whose index is damaged is left out alone", arguments: [true, false])
  func damagedIndex(readsAhead: Bool) async throws {
    let clip = try StressClip("hls-fmp4/high/index.m3u8", golden: "hls-fmp4-high", clock: .fromZero)
    var segment = try Fixtures.bytes("hls-fmp4/high/segment-1.m4s")
    // It names a track that is not there.
    let header = try #require(segment.firstRange(of: Array("tfhd".utf8))).upperBound
    segment[header + 7] = 99
    let outcome = try await play(clip, readsAhead: readsAhead, segment: "segment-1.m4s", is: segment)
    expectMissing(outcome, clip, named: "segment-1.m4s")
  }

  static let pages = [
    [], Array("<html><body>Not found</body></html>".utf8), [UInt8](repeating: 0xa5, count: 30_000),
  ]

  @Test("A segment that is no media, or nothing, is left out alone", arguments: pages, [true, false])
  func noMedia(_ bytes: [UInt8], readsAhead: Bool) async throws {
    let stream = try StressClip("hls-ts/low/index.m3u8", golden: "hls-ts-low", clock: .fromZero)
    let outcome = try await play(stream, readsAhead: readsAhead, segment: "segment-1.ts", is: bytes)
    expectMissing(outcome, stream, named: "segment-1.ts")
    let fragments = try StressClip("hls-fmp4/high/index.m3u8", golden: "hls-fmp4-high", clock: .fromZero)
    expectMissing(
      try await play(fragments, readsAhead: readsAhead, segment: "segment-1.m4s", is: bytes), fragments,
      named: "segment-1.m4s")
  }
}
