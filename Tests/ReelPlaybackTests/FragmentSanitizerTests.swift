import ReelCore
import ReelTestSupport
import Testing

@testable import ReelReading

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

  // MARK: Unknown boxes

  /// The offset of the `moof` box, and that of the `mdat` box.
  private func places(_ segment: [UInt8]) throws -> (fragment: Int, media: Int) {
    let fragment = try #require(segment.firstRange(of: Array("moof".utf8)))
    let media = try #require(segment.firstRange(of: Array("mdat".utf8)))
    return (fragment.lowerBound - 4, media.lowerBound - 4)
  }

  @Test("Boxes of unknown types are passed on, wherever they are", arguments: [7, 100_000])
  func unknown(size: Int) throws {
    let segment = try Fixtures.bytes("hls-fmp4/high/segment-1.m4s")
    let (fragment, media) = try places(segment)
    for type in ["wide", "imda", "udta", "z 9!"] {
      let zeros = [UInt8](repeating: 0, count: 24)
      for box in [mp4Box(type), mp4Box(type, zeros), longMP4Header(type, byteCount: 40) + zeros] {
        for place in [0, fragment, media, segment.count] {
          var bytes = segment
          bytes.insert(contentsOf: box, at: place)
          #expect(try passed(bytes, inPiecesOf: size) == bytes, "\(type) at \(place)")
        }
      }
    }
  }

  @Test("A large box of an unknown type is passed on as it comes")
  func largeUnknown() throws {
    let segment = try Fixtures.bytes("hls-fmp4/high/segment-1.m4s")
    let size = 40 << 20
    var boxes = FragmentSanitizer()
    var count = try boxes.pass(longMP4Header("imda", byteCount: UInt64(size))).count
    let piece = [UInt8](repeating: 0xa5, count: 1 << 20)
    for _ in 0..<39 { count += try boxes.pass(piece).count }
    count += try boxes.pass(Array(piece.dropLast(16))).count
    #expect(count == size)
    #expect(try boxes.pass(segment) == segment)
    #expect(try boxes.finish().damage == nil)
  }

  @Test("A box without a size ends with the segment", arguments: [1, 7, 100_000])
  func openEnded(size: Int) throws {
    let segment = try Fixtures.bytes("hls-fmp4/high/segment-1.m4s")
    let (fragment, media) = try places(segment)
    // Media is passed on with its size.
    var open = segment
    open.replaceSubrange(media..<media + 4, with: [0, 0, 0, 0])
    #expect(try passed(open, inPiecesOf: size) == segment)
    // Others are left out.
    let box = bigEndian(0, bytes: 4) + Array("zzzz".utf8) + [UInt8](repeating: 7, count: 50)
    #expect(try passed(segment + box, inPiecesOf: size) == segment)
    var boxes = FragmentSanitizer()
    var early = segment
    early.insert(contentsOf: box, at: fragment)
    #expect(try boxes.pass(early).isEmpty)
    #expect(throws: ReelError.self) { try boxes.finish() }
  }

  @Test("Zeros after the media are left out", arguments: [1, 7, 100_000])
  func padding(size: Int) throws {
    let segment = try Fixtures.bytes("hls-fmp4/high/segment-1.m4s")
    let zeros = [UInt8](repeating: 0, count: 600)
    #expect(try passed(segment + zeros, inPiecesOf: size) == segment)
    var boxes = FragmentSanitizer()
    _ = try boxes.pass(segment + zeros)
    #expect(try boxes.finish().damage == nil)
    // More media after them was lost.
    #expect(throws: ReelError.self) { try passed(segment + zeros + segment, inPiecesOf: size) }
    #expect(throws: ReelError.self) { try passed(zeros + segment, inPiecesOf: size) }
  }

  @Test("An index without a size is damage")
  func openEndedIndex() throws {
    var segment = try Fixtures.bytes("hls-fmp4/high/segment-1.m4s")
    let fragment = try places(segment).fragment
    segment.replaceSubrange(fragment..<fragment + 4, with: [0, 0, 0, 0])
    var boxes = FragmentSanitizer()
    #expect(throws: ReelError.self) { try boxes.pass(segment) }
  }
}
