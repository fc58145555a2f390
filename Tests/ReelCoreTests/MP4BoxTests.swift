import ReelCore
import ReelTestSupport
import Testing

@Suite("Boxes of MP4 files")
struct MP4BoxTests {
  @Test("A header of 8 bytes, and of 16")
  func headers() throws {
    let short = try #require(MP4BoxHeader([9, 0, 0, 1, 2, 109, 111, 111, 102, 7].dropFirst()))
    #expect(short.type == "moof")
    #expect(short.headerByteCount == 8)
    #expect(short.byteCount == 258)
    let long = try #require(MP4BoxHeader(longMP4Header("mdat", byteCount: .max)[...]))
    #expect(long.type == "mdat")
    #expect(long.headerByteCount == 16)
    #expect(long.byteCount == .max)
    #expect(try #require(MP4BoxHeader([0, 0, 0, 0, 109, 100, 97, 116])).byteCount == nil)
  }

  @Test("A header that is not all there")
  func cut() {
    for count in 0..<8 {
      let bytes = mp4Box("moov").prefix(count)
      #expect(MP4BoxHeader(bytes) == nil)
      #expect(MP4BoxHeader.type(in: bytes) == nil)
      #expect(MP4BoxHeader.headerByteCount(in: bytes) == 8)
    }
    for count in 8..<16 {
      let bytes = longMP4Header("moov", byteCount: 16).prefix(count)
      #expect(MP4BoxHeader(bytes) == nil)
      #expect(MP4BoxHeader.type(in: bytes) == "moov")
      #expect(MP4BoxHeader.headerByteCount(in: bytes) == 16)
    }
  }

  @Test("A size below that of the header is malformed", arguments: [2, 7, 8, 15, 16] as [UInt64])
  func malformed(size: UInt64) throws {
    let short = try #require(MP4BoxHeader([0, 0, 0, UInt8(size), 102, 114, 101, 101]))
    #expect(short.isMalformed == (size < 8))
    #expect(
      try #require(MP4BoxHeader(longMP4Header("free", byteCount: size)[...])).isMalformed == (size < 16))
  }

  @Test("The boxes of a range, with their places in the array")
  func list() {
    let bytes =
      [1, 2, 3] + mp4Box("ftyp", [4, 5]) + longMP4Header("free", byteCount: 17) + [6] + [0, 0, 0, 0]
      + Array("mdat77".utf8)
    let boxes = MP4Box.all(in: bytes[3...])
    #expect(boxes.map(\.type) == ["ftyp", "free", "mdat"])
    #expect(boxes.map(\.start) == [3, 13, 30])
    #expect(boxes.map(\.body) == [11..<13, 29..<30, 38..<40])
    #expect(boxes.map(\.isOpenEnded) == [false, false, true])
  }

  @Test("The list ends before a box that does not fit")
  func misfits() {
    let first = mp4Box("ftyp", [1])
    for next in [
      [0, 0, 0, 9] + Array("moov".utf8), [0, 0, 0, 7] + Array("moov".utf8),
      longMP4Header("moov", byteCount: .max), [0],
    ] {
      #expect(MP4Box.all(in: (first + next)[...]).map(\.type) == ["ftyp"])
    }
  }

  @Test("The user type belongs to the header")
  func userType() {
    let boxes = MP4Box.all(
      in: (mp4Box("uuid", Array(1...20)) + mp4Box("uuid", [1, 2, 3, 4]) + mp4Box("free", [1]))[...])
    #expect(boxes.map(\.userType) == [0x0102_0304, nil, nil])
    #expect(boxes.map(\.body.count) == [4, 4, 1])
  }

  @Test("Four characters as text")
  func text() {
    #expect("\("avc1" as FourCC)" == "avc1")
    #expect("\(FourCC(0x0061_7fff))" == "?a??")
  }

  @Test("Numbers are read until the bytes run out")
  func numbers() {
    var reader = BigEndianReader([1, 2, 3, 4, 5, 6])
    #expect(reader.number(2) == 0x0102)
    #expect(reader.bytes(1) == [3])
    #expect(reader.number(4) == nil)
    #expect(reader.rest == [4, 5, 6])
    #expect(reader.number(3) == 0x04_0506)
    #expect(reader.number(0) == 0)
    #expect(reader.number(1) == nil)
  }
}
