import ReelCore
@testable import ReelFFmpeg
import Testing

@Suite("MPEG pictures")
struct MPEGPictureTests {
  private func picture(_ codec: VideoCodec, _ bytes: [UInt8]) -> MPEGPicture? {
    bytes.withUnsafeBytes { MPEGPicture(codec: codec, bytes: $0) }
  }

  private let sequence: [UInt8] = [0, 0, 1, 0xb3, 0x0c, 0x00, 0x6c, 0x13, 0xff, 0xff, 0xe0, 0x18]

  @Test("Types of MPEG-2 pictures, and their groups", arguments: [VideoCodec.mpeg1, .mpeg2])
  func mpeg2(codec: VideoCodec) throws {
    let group: [UInt8] = [0, 0, 1, 0xb8, 0x00, 0x08, 0x00, 0x40]
    let intra = try #require(picture(codec, sequence + group + [0, 0, 1, 0, 0x00, 0x0f, 0xff, 0xf8]))
    #expect(intra.isIntra && !intra.isBidirectional && intra.isClosedGroup)
    #expect(intra.offset == sequence.count)
    let open = try #require(picture(codec, Array(group.dropLast()) + [0, 0, 0, 1, 0, 0x00, 0x0f, 0xff]))
    #expect(open.isIntra && !open.isClosedGroup)
    #expect(picture(codec, [0, 0, 1, 0, 0x00, 0x97, 0xff, 0xf8])?.isIntra == false)
    #expect(picture(codec, [0, 0, 1, 0, 0x00, 0x97, 0xff, 0xf8])?.isBidirectional == false)
    #expect(picture(codec, [0, 0, 1, 0, 0x00, 0x5f, 0xff, 0xf8])?.isBidirectional == true)
  }

  @Test("Types of MPEG-4 pictures, and small units as placeholders for packed ones")
  func mpeg4() throws {
    let rest = [UInt8](repeating: 0x55, count: 30)
    let headers: [UInt8] = [0, 0, 1, 0xb0, 0x01, 0, 0, 1, 0x20, 0x86, 0xc4]
    let intra = try #require(picture(.mpeg4, headers + [0, 0, 1, 0xb6, 0x10] + rest))
    #expect(intra.isIntra && intra.offset == headers.count)
    #expect(picture(.mpeg4, [0, 0, 1, 0xb6, 0x50] + rest)?.isIntra == false)
    #expect(picture(.mpeg4, [0, 0, 1, 0xb6, 0x50] + rest)?.isBidirectional == false)
    #expect(picture(.mpeg4, [0, 0, 1, 0xb6, 0x90] + rest)?.isBidirectional == true)
    #expect(picture(.mpeg4, [0, 0, 1, 0xb6, 0x50, 0x7f, 0x00])?.isBidirectional == true)
  }

  @Test("Bytes without a picture give nil")
  func nothing() {
    #expect(picture(.mpeg2, []) == nil)
    #expect(picture(.mpeg2, sequence) == nil)
    #expect(picture(.mpeg4, [0, 0, 1, 0xb6]) == nil)
    #expect(picture(.mpeg4, [0x7f]) == nil)
    #expect(picture(.h264, [0, 0, 1, 0, 0, 8, 0, 0]) == nil)
    for count in 0..<12 {
      #expect(picture(.mpeg2, Array(([0, 0, 1, 0xb8] + sequence).prefix(count))) == nil)
    }
  }
}
