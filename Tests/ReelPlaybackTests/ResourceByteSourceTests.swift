import Foundation
import ReelCore
import Testing

@testable import ReelPlayback

@Suite("A remote file as a demuxer reads it", .timeLimit(.minutes(2)))
struct ResourceByteSourceTests {
  private static let bytes = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 24) }

  /// What stands at `offset`.
  private static func read(_ source: ResourceByteSource, at offset: Int) throws {
    try source.seek(to: Int64(offset))
    var buffer = [UInt8](repeating: 0, count: 1000)
    let count = try buffer.withUnsafeMutableBytes { try source.read(into: $0) }
    #expect(count > 0)
    #expect(buffer.prefix(count).elementsEqual(bytes[offset..<offset + count]))
  }

  @Test("A transfer that was left waits, until all of the reading goes elsewhere")
  func leaving() async throws {
    let fetcher = FixtureFetcher { _, _ in .bytes(Self.bytes) }
    let url = try #require(URL(string: "http://fixtures.test/a.bin"))
    let scope = LoadScope()
    try await BlockingThread.run(named: "test") {
      let source = ResourceByteSource(
        response: try BlockingThread.wait(scope: scope) {
          try await fetcher.fetch(FetchRequest(url: url, purpose: .source))
        }, read: [], isSeekable: true, fetcher: fetcher, headers: [], scope: scope,
        recorder: StartupRecorder(clock: SystemMonotonicClock()))
      let wait = { (count: Int) in
        while fetcher.underWayCount != count { sched_yield() }
      }
      try Self.read(source, at: 0)
      try Self.read(source, at: 800_000)
      wait(2)
      // Back to the first, and to the other again.
      try Self.read(source, at: 60_000)
      try Self.read(source, at: 801_000)
      #expect(fetcher.requests.count == 2)
      wait(2)
      source.leave()
      try Self.read(source, at: 400_000)
      wait(1)
      #expect(fetcher.requests.count == 3)
      source.leave()
      // That one is there.
      try Self.read(source, at: 410_000)
      wait(1)
      #expect(fetcher.requests.count == 3)
    }
    scope.cancel()
    while fetcher.underWayCount > 0 { await Task.yield() }
  }
}
