import ReelCore
import Testing

@Suite("Byte ranges")
struct ByteRangeTests {
  @Test("The end is the byte after the last")
  func end() {
    #expect(ByteRange(offset: 100, length: 50).end == 150)
    #expect(ByteRange(offset: 0, length: 0).end == 0)
    #expect(ByteRange(offset: 100, length: nil).end == nil)
    #expect(ByteRange(offset: .max, length: 1).end == nil)
    #expect(ByteRange(offset: .max - 1, length: 1).end == .max)
  }

  @Test("As a request header, the last byte is named")
  func header() {
    #expect(ByteRange(offset: 0, length: 100).httpHeaderValue == "bytes=0-99")
    #expect(ByteRange(offset: 847, length: 16242).httpHeaderValue == "bytes=847-17088")
    #expect(ByteRange(offset: 5, length: nil).httpHeaderValue == "bytes=5-")
    #expect(ByteRange(offset: .max, length: 2).httpHeaderValue == "bytes=9223372036854775807-")
  }

  @Test("Ranges with the same ends are equal")
  func equality() {
    #expect(ByteRange(offset: 1, length: 2) == ByteRange(offset: 1, length: 2))
    #expect(ByteRange(offset: 1, length: 2) != ByteRange(offset: 1, length: nil))
    #expect(Set([ByteRange(offset: 1, length: 2), ByteRange(offset: 1, length: 2)]).count == 1)
  }
}

@Suite("Fields with ranges")
struct RangeFieldTests {
  @Test("Range, as a server reads it: one part of 100 bytes")
  func range() {
    func part(_ text: String?, of size: Int64 = 100) -> Range<Int64>? { RangeField(text)?.bytes(of: size) }
    #expect(part("bytes=0-9") == 0..<10)
    #expect(part("bytes=90-") == 90..<100)
    #expect(part("bytes=90-1000") == 90..<100)
    #expect(part("bytes=0-9223372036854775807") == 0..<100)
    #expect(part("bytes=-10") == 90..<100)
    #expect(part("bytes=-1000") == 0..<100)
    // Outside of the resource: 416.
    for text in ["bytes=100-", "bytes=-0"] {
      #expect(RangeField(text) != nil && part(text) == nil, "\(text)")
    }
    #expect(RangeField("bytes=0-") != nil && part("bytes=0-", of: 0) == nil)
    // The whole is sent.
    for text in [nil, "bytes=9-5", "bytes=a-b", "bytes=0-1,5-6", "items=0-1"] {
      #expect(RangeField(text) == nil, "\(text ?? "none")")
    }
  }

  @Test("Content-Range")
  func contentRange() {
    #expect(ContentRange(parsing: "bytes 0-99/1000")?.bytes == 0...99)
    #expect(ContentRange(parsing: "bytes 0-99/1000")?.resourceByteCount == 1_000)
    #expect(ContentRange(parsing: "bytes 5-5/*")?.bytes == 5...5)
    #expect(ContentRange(parsing: "bytes 5-5/*")?.resourceByteCount == nil)
    #expect(ContentRange(parsing: "bytes */1000")?.bytes == nil)
    #expect(ContentRange(parsing: "bytes */1000")?.resourceByteCount == 1_000)
    let bad = [
      "", "bytes", "bytes 0-99", "bytes 9-1/10", "items 0-1/2", "bytes -1-5/10", "bytes 0-x/10",
      "bytes 0-9223372036854775807/*", "bytes 0-99999999999999999999/*",
    ]
    for text in bad { #expect(ContentRange(parsing: text) == nil, "\(text)") }
  }
}
