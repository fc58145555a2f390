import ReelCore
import ReelPlayback
import ReelTestSupport
import Testing

@Suite("Outputs that show nothing", .hangLimit)
struct NullOutputTests {
  @Test("Every picture is counted")
  func counts() async throws {
    let output = NullOutput()
    #expect(!output.isExternal)
    #expect(output.pictureCount == 0)
    #expect(output.lastTime == nil)
    try await show("media/h264-gops.mp4", count: 7, on: output)
    #expect(output.pictureCount == 7)
    let golden = try Golden("h264-gops.mp4")
    #expect(output.lastTime == golden.time(golden.pictures[6].ticks))
    output.finish()
    output.finish()
    #expect(output.pictureCount == 7)
  }
}
