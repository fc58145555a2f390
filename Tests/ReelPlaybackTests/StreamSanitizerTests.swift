import ReelCore
import ReelTestSupport
import Testing

@testable import ReelReading

@Suite("Looking at how a segment begins")
struct StreamSanitizerTests {
  private func passed(_ bytes: [UInt8], inPiecesOf size: Int) throws -> [UInt8] {
    var stream = StreamSanitizer()
    var passed: [UInt8] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      passed += try stream.pass(Array(rest.prefix(size)))
      rest = rest.dropFirst(size)
    }
    return passed + (try stream.finish().bytes)
  }

  @Test("Media is passed on as it is, however it comes", arguments: [1, 188, 1023, 1024, 100_000])
  func media(size: Int) throws {
    for path in ["hls-ts/low/segment-1.ts", "media/audio-aac.ts"] {
      let segment = try Fixtures.bytes(path)
      #expect(try passed(segment, inPiecesOf: size) == segment)
      #expect(try passed(Array(segment.prefix(376)), inPiecesOf: size) == Array(segment.prefix(376)))
    }
  }

  @Test(
    "Only a packet that has begun is cut off, not other bytes at the end", arguments: [1, 188, 1023, 100_000])
  func cutOff(size: Int) throws {
    func damage(_ bytes: [UInt8]) throws -> ReelError? {
      var stream = StreamSanitizer()
      for start in stride(from: 0, to: bytes.count, by: size) {
        _ = try stream.pass(Array(bytes[start..<min(bytes.count, start + size)]))
      }
      return try stream.finish().damage
    }
    let segment = try Fixtures.bytes("hls-ts/low/segment-1.ts")
    #expect(try damage(segment) == nil)
    #expect(try damage(Array(segment.dropLast(90)))?.reason.contains("inside a packet") == true)
    for count in [1, 100, 300] {
      #expect(try damage(segment + [UInt8](repeating: 0, count: count)) == nil, "\(count)")
    }
    // With a time stamp of 4 bytes before each packet.
    let stamped = stride(from: 0, to: segment.count, by: 188).flatMap {
      [0, 0, 0, 0] + segment[$0..<($0 + 188)]
    }
    #expect(try damage(stamped) == nil)
    #expect(try damage(Array(stamped.dropLast(90)))?.reason.contains("inside a packet") == true)
  }

  @Test(
    "A segment whose beginning is damaged, or is no beginning, is passed on", arguments: [1, 1000, 100_000])
  func damaged(size: Int) throws {
    var segment = try Fixtures.bytes("hls-ts/low/segment-1.ts")
    for index in 0..<2000 { segment[index] = UInt8(truncatingIfNeeded: index &* 167 >> 3) }
    #expect(try passed(segment, inPiecesOf: size) == segment)
    #expect(try passed(Array(segment.dropFirst(2077)), inPiecesOf: size) == Array(segment.dropFirst(2077)))
  }

  static let others: [[UInt8]] = [
    Array("<html><body>Not found</body></html>".utf8), Array("#EXTM3U\n".utf8), Array("{}".utf8),
    Array(repeating: UInt8(ascii: "x"), count: 20_000),
    (0..<20_000).map { UInt8(truncatingIfNeeded: $0 * $0 >> 5) },
    [0, 1, 2],
  ]

  @Test("Of what is no media nothing is passed on", arguments: [1, 1000, 100_000])
  func noMedia(size: Int) throws {
    for bytes in Self.others {
      let error = #expect(throws: ReelError.self) { try passed(bytes, inPiecesOf: size) }
      #expect(error?.kind == .badMedia)
    }
  }
}
