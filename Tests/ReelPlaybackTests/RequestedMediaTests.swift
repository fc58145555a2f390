import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelReading
@testable import ReelSources

@Suite("Requests say which media they are for", .hangLimit)
struct RequestedMediaTests {
  /// Counts a source to its end, and returns the requests.
  private func requests(of path: String, _ role: ReaderRole) async throws -> [FetchRequest] {
    let fetcher = FixtureFetcher()
    let configuration = LoadingConfiguration()
    let scope = LoadScope()
    defer { scope.cancel() }
    let opened = try await OpenSource(
      try MediaSource(argument: "http://fixtures.test/\(path)"), fetcher: fetcher,
      configuration: configuration, scope: scope, recorder: StartupRecorder(), gate: nil,
      logger: silentLogger, readsAhead: false)
    let reader = try CountingReader(
      opened, for: role, controller: RungController(configuration, clock: SystemMonotonicClock()),
      offsets: TimestampOffsets(), log: { _ in }, scope: scope)
    while try await reader.next() != nil {}
    return fetcher.requests
  }

  @Test("Video beside separate audio: its rates, duration and what follows")
  func video() async throws {
    let requests = try await requests(of: "hls-fmp4/master.m3u8", .main(wantsAudio: false))
    let segments = requests.filter { $0.purpose == .segment }
    #expect(segments.map { $0.media?.tracks } == [.video, .video, .video])
    #expect(segments.map { $0.media?.bitRate } == [900_000, 900_000, 900_000])
    #expect(segments.map { $0.media?.topBitRate } == [900_000, 900_000, 900_000])
    #expect(
      segments.map { $0.media?.next?.url.lastPathComponent } == ["segment-1.m4s", "segment-2.m4s", nil])
    #expect(segments.allSatisfy { $0.media?.duration ?? .zero > .zero })
    #expect(segments.allSatisfy { $0.media?.isDASH == false && $0.media?.isLive == false })
    let initialization = requests.first { $0.purpose == .initialization }
    #expect(initialization?.media?.tracks == .video)
    #expect(initialization?.media?.duration == nil)
    #expect(initialization?.media?.next == nil)
    #expect(Set(requests.filter { $0.media == nil }.map(\.purpose)) == [.source, .manifest])
  }

  @Test("Separate audio")
  func audio() async throws {
    let requests = try await requests(of: "hls-fmp4/master.m3u8", .audio(group: "sound"))
    let segments = requests.filter { $0.purpose == .segment }
    #expect(!segments.isEmpty)
    #expect(segments.allSatisfy { $0.media?.tracks == .audio && $0.media?.bitRate == nil })
  }

  @Test("Segments that are parts of a file: the next one is a range")
  func ranges() async throws {
    let requests = try await requests(of: "hls-byterange-fmp4/index.m3u8", .main(wantsAudio: true))
    let segments = requests.filter { $0.purpose == .segment }
    #expect(segments.count > 1)
    #expect(segments.dropLast().allSatisfy { $0.media?.next?.url == $0.url })
    #expect(segments.dropLast().map { $0.media?.next?.range } == segments.dropFirst().map(\.range))
    #expect(segments.last?.media?.next == nil)
    #expect(segments.allSatisfy { $0.media?.tracks == .videoAndAudio })
  }

  @Test("DASH")
  func dash() async throws {
    let requests = try await requests(of: "dash-number/manifest.mpd", .main(wantsAudio: false))
    let segments = requests.filter { $0.purpose == .segment }
    #expect(!segments.isEmpty)
    #expect(segments.allSatisfy { $0.media?.isDASH == true && $0.media?.tracks == .video })
  }
}
