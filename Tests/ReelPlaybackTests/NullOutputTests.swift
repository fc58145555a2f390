import ReelCore
import ReelPlayback
import ReelTestSupport
import Testing

@Suite("Outputs that show nothing", .hangLimit)
struct NullOutputTests {
  @Test("Every frame is counted")
  func counts() async throws {
    let output = NullOutput()
    #expect(!output.isExternal)
    #expect(output.frameCount == 0)
    #expect(output.lastTime == nil)
    try await show("media/h264-gops.mp4", count: 7, on: output)
    #expect(output.frameCount == 7)
    let golden = try Golden("h264-gops.mp4")
    #expect(output.lastTime == golden.time(golden.frames[6].ticks))
    output.finish()
    output.finish()
    #expect(output.frameCount == 7)
  }
}
