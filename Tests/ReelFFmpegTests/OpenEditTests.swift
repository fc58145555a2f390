import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

@Suite("Edits without a length")
struct OpenEditTests {
  private func frames(_ bytes: [UInt8], isSeekable: Bool) throws -> [Seen] {
    var options = ClipReader.Options()
    options.isSeekable = isSeekable
    return try ClipReader(
      source: MemorySource(bytes, isSeekable: isSeekable), format: .mp4, options: options, name: "t",
      logger: silentLogger
    ).rest()
  }

  @Test(
    "The only edit of a file may extend to its end", arguments: ["editlist-bframes.mp4", "h264-bframes.mp4"],
    [true, false])
  func toTheEnd(name: String, isSeekable: Bool) throws {
    var bytes = try Fixtures.bytes("media/\(name)")
    let expected = try frames(bytes, isSeekable: isSeekable)
    let list = try #require(bytes.firstRange(of: Array("elst".utf8))).upperBound
    bytes.replaceSubrange(list + 8..<list + 12, with: [0, 0, 0, 0])
    let found = try frames(bytes, isSeekable: isSeekable)
    #expect(!expected.isEmpty)
    #expect(found == expected)
  }

  @Test("Other edits are left as they are")
  func others() throws {
    for name in ["editlist.mp4", "editlist-empty.mp4", "h264-fragmented.mp4"] {
      let bytes = try Fixtures.bytes("media/\(name)")
      var mended = bytes
      OpenEdit.mend(&mended)
      #expect(mended == bytes)
    }
  }
}
