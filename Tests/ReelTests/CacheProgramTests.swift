import Foundation
import Reel
import ReelTestSupport
import ReelTesting
import Testing

@Suite("The program of Docs/Caching.md", .hangLimit) struct CacheProgramTests {
  @Test("A second pool opens an item from disk")
  func pool() async throws {
    let folder = try TemporaryFolder()
    let faults = try FaultRule.parse("*=fields:Cache-Control: max-age=3600")
    try await Origin.use(Origin.Configuration(directory: Fixtures.folder, faults: faults)) { origin in
      let feed = Feed(urls: [origin.url("hls-fmp4/master.m3u8")])
      var frames: [Data] = []
      for _ in 0..<2 {
        let pool = makePool(of: feed, keptIn: folder.url.appending(path: "kept"))
        defer { pool.close() }
        try await pool.ready(0)
        frames.append(try #require(try await pool.show(0).firstFrame().frame).rgba)
      }
      #expect(frames[0] == frames[1])
      #expect(origin.requestLog.count { $0.path.hasSuffix("master.m3u8") } == 1)
    }
  }
}
