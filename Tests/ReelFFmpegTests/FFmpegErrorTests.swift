import ReelCore
import ReelFFmpeg
import ReelTestSupport
import Testing

@Suite("Errors of FFmpeg")
struct FFmpegErrorTests {
  /// AVERROR_INVALIDDATA: the letters INDA, negative (libavutil/error.h).
  private let invalidData: Int32 = -0x4144_4e49

  @Test("The call and the logged line go with it")
  func reelError() {
    let bare = FFmpegError(call: "avformat_open_input", code: invalidData).reelError()
    #expect(bare.kind == .badMedia)
    #expect(bare.reason == "Invalid data found when processing input (avformat_open_input)")
    let detailed = FFmpegError(call: "avformat_open_input", code: invalidData, detail: "moov atom not found")
    var expected = ReelError(
      .unsupported, "moov atom not found (avformat_open_input: Invalid data found when processing input)")
    expected.ffmpegCode = invalidData
    #expect(detailed.reelError(.unsupported) == expected)
  }

  @Test("A file without its index says so")
  func fromAFile() throws {
    let error = #expect(throws: ReelError.self) { _ = try makeReader(Clip("bad/cut-before-moov.mp4")) }
    #expect(error?.reason.contains("moov") == true)
    #expect(error?.reason.contains("avformat_open_input") == true)
  }
}
