import ReelCore
import Testing

@testable import ReelFFmpeg

@Suite("NAL units")
struct NALUnitsTests {
  private func units(_ bytes: [UInt8], _ framing: NALFraming) -> [[UInt8]] {
    var found: [[UInt8]] = []
    bytes.withUnsafeBytes { buffer in
      buffer.forEachNALUnit(framing: framing) { unit in
        found.append(Array(unit))
        return true
      }
    }
    return found
  }

  @Test("Start codes of three and four bytes")
  func annexB() {
    #expect(units([0, 0, 1, 5, 6, 0, 0, 1, 7], .annexB) == [[5, 6], [7]])
    #expect(units([9, 9, 0, 0, 1, 5], .annexB) == [[5]])
    // The zero byte of a long start code stays with the unit before: a trailing zero.
    #expect(units([0, 0, 0, 1, 5, 0, 0, 0, 1, 6], .annexB) == [[5, 0], [6]])
    #expect(units([0, 0, 1], .annexB) == [[]])
    #expect(units([], .annexB).isEmpty)
    #expect(units([1, 2, 3], .annexB).isEmpty)
  }

  @Test("Lengths of one, two and four bytes")
  func lengths() {
    #expect(units([2, 5, 6, 1, 7], .lengthPrefixed(1)) == [[5, 6], [7]])
    #expect(units([0, 2, 5, 6, 0, 1, 7], .lengthPrefixed(2)) == [[5, 6], [7]])
    #expect(units([0, 0, 0, 2, 5, 6, 0, 0, 0, 1, 7], .lengthPrefixed(4)) == [[5, 6], [7]])
  }

  @Test("A length that leads beyond the packet is cut, one of nothing is passed over")
  func wrongLengths() {
    #expect(units([0xff, 0xff, 0xff, 0xff, 5, 6], .lengthPrefixed(4)) == [[5, 6]])
    #expect(units([0, 0, 0, 0, 0, 0, 0, 1, 7], .lengthPrefixed(4)) == [[7]])
    #expect(units([0, 0, 0], .lengthPrefixed(4)).isEmpty)
    #expect(units([0, 0, 0, 9], .lengthPrefixed(4)).isEmpty)
  }

  @Test("The walk ends where it is told to")
  func stop() {
    var count = 0
    let bytes: [UInt8] = [1, 5, 1, 6, 1, 7]
    bytes.withUnsafeBytes { buffer in
      buffer.forEachNALUnit(framing: .lengthPrefixed(1)) { _ in
        count += 1
        return count < 2
      }
    }
    #expect(count == 2)
  }

  @Test("Start codes are found wherever they are")
  func startCodes() {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<300 {
      let bytes = (0..<40).map { _ in UInt8.random(in: 0...2, using: &generator) }
      let from = Int.random(in: 0...42, using: &generator)
      let expected = bytes.indices.first { index in
        index >= from && index + 2 < bytes.count && bytes[index...(index + 2)].elementsEqual([0, 0, 1])
      }
      let found = bytes.withUnsafeBytes { $0.firstStartCode(from: from) }
      #expect(found == expected, "from \(from) in \(bytes)")
    }
  }

  @Test("What an H.264 header says")
  func h264Headers() throws {
    let header = { (type: UInt8) in
      try #require([0x60 | type, 0x88].withUnsafeBytes { NALUnitHeader(codec: .h264, bytes: $0) })
    }
    for type in UInt8(0)...31 {
      let found = try header(type)
      #expect(found.type == type)
      #expect(found.isPictureSlice == [1, 2, 3, 4, 5].contains(type), "type \(type)")
      #expect(found.isIDR == (type == 5))
      #expect(found.isRandomAccess == (type == 5))
      #expect(!found.isLeading && !found.mayHaveLeadingPictures)
    }
    #expect(try [6, 7, 8, 9].allSatisfy { try header($0).precedesPicture })
    #expect(try ![1, 5, 10, 11, 12, 19].contains { try header($0).precedesPicture })
  }

  @Test("What a HEVC header says")
  func hevcHeaders() throws {
    let header = { (type: UInt8, layer: UInt8) in
      let bytes = [type << 1 | layer >> 5, (layer & 31) << 3 | 1]
      return try #require(bytes.withUnsafeBytes { NALUnitHeader(codec: .hevc, bytes: $0) })
    }
    for type in UInt8(0)...63 {
      let found = try header(type, 0)
      #expect(found.type == type)
      #expect(found.isPictureSlice == (type < 32), "type \(type)")
      #expect(found.isIDR == [19, 20].contains(type), "type \(type)")
      #expect(found.isRandomAccess == (16...23).contains(type), "type \(type)")
      #expect(found.isLeading == [6, 7, 8, 9].contains(type), "type \(type)")
    }
    // BLA_W_LP, BLA_W_RADL, IDR_W_RADL, CRA_NUT.
    #expect(try (0...63).filter { try header($0, 0).mayHaveLeadingPictures } == [16, 17, 19, 21])
    #expect(try [32, 33, 34, 35, 39].allSatisfy { try header($0, 0).precedesPicture })
    #expect(try ![0, 1, 19, 36, 37, 38, 40].contains { try header($0, 0).precedesPicture })
    #expect(try !header(1, 1).isPictureSlice)
    #expect(try !header(32, 40).precedesPicture)
  }

  @Test("Headers that are not there")
  func shortHeaders() {
    let none: [UInt8] = []
    #expect(none.withUnsafeBytes { NALUnitHeader(codec: .h264, bytes: $0) } == nil)
    #expect([UInt8(0x26)].withUnsafeBytes { NALUnitHeader(codec: .hevc, bytes: $0) } == nil)
    #expect([UInt8(0x26), 1].withUnsafeBytes { NALUnitHeader(codec: .av1, bytes: $0) } == nil)
  }

  @Test("Framing as the codec's configuration record says")
  func framing() {
    let framing = { (codec: VideoCodec, bytes: [UInt8]) in
      bytes.withUnsafeBytes { NALFraming(codec: codec, extradata: $0) }
    }
    #expect(framing(.h264, [1, 100, 0, 11, 0xff, 0xe1, 0]) == .lengthPrefixed(4))
    #expect(framing(.h264, [1, 100, 0, 11, 0xfd, 0xe1, 0]) == .lengthPrefixed(2))
    #expect(framing(.h264, [0, 0, 0, 1, 0x67, 100, 0]) == .annexB)
    #expect(framing(.h264, []) == .annexB)
    var record = [UInt8](repeating: 0, count: 23)
    record[0] = 1
    record[21] = 0xff
    #expect(framing(.hevc, record) == .lengthPrefixed(4))
    #expect(framing(.hevc, [0, 0, 0, 1, 0x40, 1] + [UInt8](repeating: 3, count: 20)) == .annexB)
  }
}
