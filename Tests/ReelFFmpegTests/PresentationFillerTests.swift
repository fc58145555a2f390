import ReelCore
@testable import ReelFFmpeg
import Testing

@Suite("Presentation times of MPEG video")
struct PresentationFillerTests {
  /// An MPEG-4 frame of type I, P or B, or N for one that is not coded.
  private func packet(_ type: Character, dts: Int64?, pts: Int64? = nil) throws -> Packet {
    let packet = try Packet()
    let header: [UInt8] = [0, 0, 1, 0xb6, type == "I" ? 0x10 : type == "B" ? 0x90 : 0x50, 0x7f]
    let bytes = header + [UInt8](repeating: 0x55, count: type == "N" ? 0 : 30)
    try packet.setBytes(copying: bytes[...], streamIndex: 0)
    packet.setTimestamps(presentationTicks: pts, decodingTicks: dts, isKey: type == "I", isCorrupt: false)
    return packet
  }

  /// The presentation times of frames whose decoding times are one tick apart.
  private func times(_ types: String, format: ContainerFormat = .avi, pts: [Int64?] = []) throws -> [Int64?] {
    var filler = try #require(PresentationFiller(codec: .mpeg4, format: format))
    var times: [Int64?] = []
    for (index, type) in types.enumerated() {
      filler.append(try packet(type, dts: Int64(index), pts: index < pts.count ? pts[index] : nil))
      while let packet = filler.next() { times.append(packet.presentationTicks) }
    }
    while let packet = filler.flush() { times.append(packet.presentationTicks) }
    return times
  }

  @Test("I and P frames are shown when the next one is decoded")
  func order() throws {
    #expect(try times("IPBBPBB") == [1, 4, 2, 3, 7, 5, 6])
    #expect(try times("IPPP") == [1, 2, 3, 4])
    #expect(try times("I") == [1])
    #expect(try times("BBIP") == [0, 1, 3, 4])
  }

  @Test("A frame that is not coded gets the time of the one packed before it")
  func packed() throws {
    #expect(try times("IPNPN") == [1, 3, 2, 5, 4])
  }

  @Test("Times from the container are kept, but not those that the demuxer guesses for AVI")
  func known() throws {
    #expect(try times("IPBB", format: .mpegPS, pts: [1, 4, nil, nil]) == [1, 4, 2, 3])
    #expect(try times("IPBBP", format: .mpegPS, pts: [1]) == [1, 4, 2, 3, 5])
    #expect(try times("IPBB", format: .avi, pts: [0, 1]) == [1, 4, 2, 3])
  }

  @Test("No frame is held for long")
  func bound() throws {
    var filler = try #require(PresentationFiller(codec: .mpeg2, format: .avi))
    filler = try #require(PresentationFiller(codec: .mpeg4, format: .avi))
    filler.append(try packet("I", dts: 0))
    var count = 0
    for index in 1...100 {
      filler.append(try packet("B", dts: Int64(index)))
      while filler.next() != nil { count += 1 }
    }
    #expect(count > 60)
    #expect(PresentationFiller(codec: .vp8, format: .avi) == nil)
  }
}
