import ReelFFmpeg
import ReelTestSupport
import Testing

@Suite("Guessing containers")
struct ContainerProbeTests {
  private func guess(_ path: String, count: Int = 4096) throws -> ContainerProbe.Guess {
    ContainerProbe.guess(Array(try Fixtures.bytes(path).prefix(count)))
  }

  @Test(
    "Containers that are supported",
    arguments: [
      ("media/h264.ts", ContainerFormat.mpegTS), ("media/h264.flv", .flv), ("media/h264.mkv", .matroska),
      ("media/vp9.webm", .matroska), ("media/h264-faststart.mp4", .mp4), ("media/annexb.h264", .h264),
      ("media/annexb-bframes.h264", .h264), ("media/annexb.hevc", .hevc),
      ("media/mpeg2.mpg", .mpegPS), ("media/mpeg4.avi", .avi),
    ])
  func supported(path: String, format: ContainerFormat) throws {
    #expect(try guess(path) == .supported(format))
  }

  @Test("Containers that are not supported are named")
  func unsupported() throws {
    let ogg = Array("OggS".utf8) + [UInt8](repeating: 0, count: 60)
    let guess = ContainerProbe.guess(ogg)
    guard case .unsupported(let name) = guess else {
      Issue.record("\(guess)")
      return
    }
    #expect(name.contains("Ogg"))
  }

  @Test("What is nothing stays unknown")
  func unknown() {
    #expect(ContainerProbe.guess([]) == .unknown)
    #expect(ContainerProbe.guess([UInt8](repeating: 0, count: 1000)) == .unknown)
    #expect(ContainerProbe.guess(Array("this is only text\n".utf8)) == .unknown)
  }
}
