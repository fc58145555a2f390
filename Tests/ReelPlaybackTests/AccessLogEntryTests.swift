import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelSources

@Suite("The account of a media file", .hangLimit)
struct AccessLogEntryTests {
  /// Counts what comes; its answers may be without ranges.
  private final class Counter: Fetching {
    let base: FixtureFetcher
    let supportsRanges: Bool
    let byteCount = Locked(0)

    init(_ base: FixtureFetcher = FixtureFetcher(), supportsRanges: Bool = true) {
      self.base = base
      self.supportsRanges = supportsRanges
    }

    func fetch(_ request: FetchRequest) async throws -> FetchResponse {
      var response = try await base.fetch(request)
      response.supportsRanges = supportsRanges
      return response.wrappingBody { [byteCount] body in
        let chunk = try await body.next()
        byteCount.withLock { $0 += chunk?.count ?? 0 }
        return chunk
      }
    }
  }

  private static let files = [
    "media/h264-bframes.mp4", "media/h264-moov-last.mp4", "media/h264-fragmented.mp4", "media/h264.mkv",
    "media/h264.ts",
  ]

  private static func remote(_ path: String) throws -> MediaSource {
    .url(try #require(URL(string: "http://fixtures.test/\(path)")))
  }

  @Test("What comes of a remote file, and what is asked for it", arguments: files, [true, false])
  func remote(path: String, supportsRanges: Bool) async throws {
    let counter = Counter(supportsRanges: supportsRanges)
    let result = try await simulate(try Self.remote(path), fetcher: counter)
    let entry = try #require(result.item.accessLog.first)
    #expect(result.item.accessLog.count == 1 && entry.rung == nil)
    #expect(entry.requestCount == counter.base.requests.count)
    #expect(entry.byteCount == Int64(counter.byteCount.withLock { $0 }))
    #expect(entry.shownFrameCount == result.shown.count)
  }

  @Test("What is read of a local file", arguments: files)
  func local(path: String) async throws {
    let result = try await simulate(
      try MediaSource(argument: Fixtures.path(path)), fetcher: Counter(),
      configure: { $0.loading.fetchesFiles = false })
    let entry = try #require(result.item.accessLog.first)
    #expect(result.item.accessLog.count == 1 && entry.rung == nil)
    #expect(entry.requestCount == 1)
    // The demuxer of Matroska looks at the end first.
    #expect(entry.byteCount >= Int64(try Fixtures.bytes(path).count))
  }

  @Test("The account is there while the file is played", arguments: [true, false])
  func live(isRemote: Bool) async throws {
    let path = "media/h264-bframes.mp4"
    let source = isRemote ? try Self.remote(path) : try MediaSource(argument: Fixtures.path(path))
    let stage = try SimulatedStage(source, fetcher: Counter()) { $0.loading.fetchesFiles = isRemote }
    stage.player.preloadTarget = PreloadTarget(stage: .firstFrame)
    stage.player.replaceCurrentItem(with: stage.item)
    try await stage.run(untilLoaded: .firstFrame)
    let entry = try #require(stage.item.accessLog.first)
    #expect(entry.requestCount == 1)
    #expect(entry.byteCount > 0)
    try await stage.close()
  }
}
