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
