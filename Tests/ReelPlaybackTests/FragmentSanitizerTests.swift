import ReelCore
import ReelTestSupport
import Testing

@testable import ReelPlayback

@Suite("Watching the boxes of a segment")
struct FragmentSanitizerTests {
  private func passed(_ bytes: [UInt8], inPiecesOf size: Int) throws -> [UInt8] {
    var boxes = FragmentSanitizer()
    var passed: [UInt8] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      passed += try boxes.pass(Array(rest.prefix(size)))
      rest = rest.dropFirst(size)
    }
    return passed + (try boxes.finish().bytes)
  }

  @Test("A whole segment is passed on as it is, however it comes", arguments: [1, 2, 7, 8, 100, 100_000])
  func whole(size: Int) throws {
    let segment = try Fixtures.bytes("hls-fmp4/high/segment-1.m4s")
    #expect(try passed(segment, inPiecesOf: size) == segment)
  }

  @Test("A segment that is cut off is filled up to the end of its box", arguments: [1, 7, 4096])
  func cut(size: Int) throws {
    let segment = try Fixtures.bytes("hls-fmp4/high/segment-1.m4s")
    let filled = try passed(Array(segment.dropLast(500)), inPiecesOf: size)
    #expect(filled == segment.dropLast(500) + [UInt8](repeating: 0, count: 500))
  }

  @Test(
    "A header, or an index, that is cut off behind the media is left out, and told", arguments: [1, 1000])
  func header(size: Int) throws {
    let segment = try Fixtures.bytes("hls-fmp4/high/segment-1.m4s")
    let fragment = try #require(segment.firstRange(of: Array("moof".utf8))).lowerBound - 4
    for more in [3, 8, 100] {
      let bytes = segment + segment[fragment...].prefix(more)
      #expect(try passed(bytes, inPiecesOf: size) == segment)
      var boxes = FragmentSanitizer()
      _ = try boxes.pass(bytes)
      #expect(try boxes.finish().damage != nil)
    }
  }

  @Test("Boxes before the media are held up to a limit")
  func noMedia() throws {
    let box = mp4Box("emsg", [UInt8](repeating: 0, count: 65_528))
    var boxes = FragmentSanitizer()
    let error = #expect(throws: ReelError.self) {
      for _ in 0..<300 {
        let passed = try boxes.pass(box)
        #expect(passed.isEmpty)
      }
    }
    #expect(error?.kind == .badMedia)
    #expect(error?.reason.contains("no media") == true)
  }

  @Test("Of a segment that is cut off before its media nothing is passed on", arguments: [1, 7, 100_000])
  func cutBeforeMedia(size: Int) throws {
    let segment = try Fixtures.bytes("hls-fmp4/high/segment-1.m4s")
    for type in ["moof", "mfhd", "traf", "tfhd", "trun"] {
      let cut = try #require(segment.firstRange(of: Array(type.utf8))).lowerBound + 2
      var boxes = FragmentSanitizer()
      var rest = segment[..<cut]
      while !rest.isEmpty {
        #expect(try boxes.pass(Array(rest.prefix(size))).isEmpty)
        rest = rest.dropFirst(size)
      }
      let error = #expect(throws: ReelError.self) { _ = try boxes.finish() }
      #expect(error?.kind == .badMedia)
    }
  }

  @Test("What is no segment is refused before a byte of it is passed on", arguments: [3, 1000])
  func noSegment(size: Int) throws {
    var boxes = FragmentSanitizer()
    let page = Array("<html><body>Not found</body></html>".utf8)
    var first = page[...]
    var passedCount = 0
    #expect(throws: ReelError.self) {
      while !first.isEmpty {
        passedCount += try boxes.pass(Array(first.prefix(size))).count
        first = first.dropFirst(size)
      }
    }
    #expect(passedCount == 0)
  }
}
