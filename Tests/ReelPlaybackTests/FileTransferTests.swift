import Foundation
import ReelCore
import ReelTesting
import ReelTestSupport
import Testing

@testable import ReelPlayback
import ReelReading
@testable import ReelSources

@Suite("A file that is read in one transfer", .hangLimit)
struct FileTransferTests {
  private let file = (0..<1000).map { UInt8(truncatingIfNeeded: $0) }

  /// A transfer of which so much was read.
  private func transfer(headByteCount: Int, chunkByteCount: Int = 64) throws -> FileTransfer {
    let rest = Locked(file[headByteCount...])
    let url = try #require(URL(string: "http://reel.test/file.mp4"))
    let response = FetchResponse(
      url: url, contentType: nil, bodyOffset: 0, bodyByteCount: nil, resourceByteCount: nil,
      supportsRanges: true,
      body: FetchBody {
        rest.withLock { rest in
          let chunk = Array(rest.prefix(chunkByteCount))
          rest = rest.dropFirst(chunk.count)
          return chunk.isEmpty ? nil : chunk
        }
      })
    return FileTransfer(
      response, head: Array(file[..<headByteCount]), url: url, asked: .zero, answered: .zero)
  }

  private func bytes(_ part: (body: FetchBody, isFirst: Bool)?) async throws -> [UInt8]? {
    try await part?.body.collect(upTo: 1 << 20)
  }

  @Test(
    "Parts that lie one behind the other are given, whatever chunks they come in", arguments: [1, 7, 64, 999])
  func parts(chunkByteCount: Int) async throws {
    let transfer = try transfer(headByteCount: 150, chunkByteCount: chunkByteCount)
    let first = try #require(transfer.part(ByteRange(offset: 100, length: 200)))
    #expect(first.isFirst)
    // Asked for before the one before it is read.
    let second = try #require(transfer.part(ByteRange(offset: 300, length: 500)))
    #expect(!second.isFirst)
    #expect(try await bytes(first) == Array(file[100..<300]))
    #expect(try await bytes(second) == Array(file[300..<800]))
    #expect(try await bytes(transfer.part(ByteRange(offset: 800, length: nil))) == Array(file[800...]))
  }

  @Test("What lies elsewhere has to be asked for, and what a part leaves unread is passed over")
  func elsewhere() async throws {
    let transfer = try transfer(headByteCount: 10)
    #expect(transfer.part(ByteRange(offset: 1 << 20, length: 5)) == nil)
    _ = try #require(transfer.part(ByteRange(offset: 20, length: 100)))
    #expect(transfer.part(ByteRange(offset: 20, length: 100)) == nil)
    #expect(transfer.part(ByteRange(offset: 400, length: 10)) == nil)
    #expect(try await bytes(transfer.part(ByteRange(offset: 120, length: 10))) == Array(file[120..<130]))
  }

  @Test("It is claimed once, and gives nothing once it is closed")
  func claim() throws {
    let transfer = try transfer(headByteCount: 0)
    #expect(transfer.claim() === transfer)
    #expect(transfer.claim() == nil)
    transfer.close()
    #expect(transfer.part(nil) == nil)
  }

  @Test("A player opens a DASH file that begins with its index by one request, and reads on in it")
  func player() async throws {
    try await Origin.use { origin in
      let player = Player(
        fetcher: makeFetcher(), configuration: PlayerConfiguration(), logger: silentLogger)
      player.setMuted(true)
      let item = PlayerItem(try origin.source("dash-ondemand/manifest.mpd"))
      let events = item.events
      player.replaceCurrentItem(with: item)
      player.setRate(.infinity)
      let end = await events.first { $0.isEnd }
      guard case .playedToEnd? = end else {
        Issue.record("\(String(describing: end))")
        return
      }
      await player.stopAndWait()
      let media = origin.requestLog.map(\.path).filter { $0.hasSuffix("high.mp4") }
      #expect(media.count == 1)
    }
  }

  @Test(
    "An index that can't be read does not take the media with it",
    arguments: ["indexRange=\"1-20\"", "indexRange=\"900000-900100\""])
  func damagedIndex(range: String) async throws {
    let manifest = String(decoding: try Fixtures.bytes("dash-ondemand/manifest.mpd"), as: UTF8.self)
      .replacing(try Regex("indexRange=\"[^\"]*\""), with: range)
    let configuration = Origin.Configuration(
      directory: Fixtures.folder, routes: ["/dash-ondemand/damaged.mpd": Origin.Response(manifest)])
    try await Origin.use(configuration) { origin in
      let extraction = try await extract(.count(0), from: origin.source("dash-ondemand/damaged.mpd"))
      let expected = try await extract(.count(0), from: origin.source("dash-ondemand/manifest.mpd"))
      #expect(extraction.frames.map(\.md5) == expected.frames.map(\.md5))
      #expect(!extraction.report.faults.isEmpty)
    }
  }
}
