import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelReading
import ReelTestSupport
import Testing

@Suite("Outputs that are closures", .hangLimit)
struct CallbackOutputTests {
  @Test("A frame that is kept outlives the call, and the source")
  func keeping() async throws {
    let kept = Locked<[VideoFrame]>([])
    let output = CallbackOutput { frame in kept.withLock { $0.append(frame) } }
    try await show("media/h264-bframes.mp4", on: output)
    try output.finish()
    let md5s = try kept.withLock { $0 }.map { try $0.md5() }
    #expect(try md5s == Golden("h264-bframes.mp4").frames.map(\.md5))
  }

  @Test("What the closure throws goes to the caller")
  func failure() async throws {
    let output = CallbackOutput { frame in
      if frame.time > .zero { throw ReelError(.cannotWriteOutput, "no more") }
    }
    try await show("media/h264.ts", count: 1, on: output)
    let error = await reelError { try await show("media/h264.ts", count: 2, on: output) }
    #expect(error?.kind == .cannotWriteOutput)
    #expect(error?.reason == "no more")
  }

  @Test("The end is told once")
  func finish() throws {
    let count = Locked(0)
    let output = CallbackOutput(
      isExternal: true, onFinish: { count.withLock { $0 += 1 } }, onFrame: { _ in })
    #expect(output.isExternal)
    #expect(!CallbackOutput { _ in }.isExternal)
    try output.finish()
    try output.finish()
    #expect(count.withLock { $0 } == 1)
  }
}
