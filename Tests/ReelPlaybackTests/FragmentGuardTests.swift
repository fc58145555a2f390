import ReelCore
import Testing

@testable import ReelPlayback

@Suite("Watching the boxes of a segment")
struct FragmentGuardTests {
  private func passed(_ bytes: [UInt8], inPiecesOf size: Int) throws -> [UInt8] {
    var boxes = FragmentGuard()
    var passed: [UInt8] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      passed += try boxes.pass(Array(rest.prefix(size)))
      rest = rest.dropFirst(size)
    }
    return passed + (try boxes.fill())
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

  @Test("A header that is cut off is left out")
  func header() throws {
    let segment = try Fixtures.bytes("hls-fmp4/high/segment-1.m4s")
    #expect(try passed(segment + [0, 0, 1], inPiecesOf: 1000) == segment)
  }

  @Test("What is no segment is refused before a byte of it is passed on", arguments: [3, 1000])
  func noSegment(size: Int) throws {
    var boxes = FragmentGuard()
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
