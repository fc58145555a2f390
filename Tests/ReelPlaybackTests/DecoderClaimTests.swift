import ReelCore
import ReelFFmpeg
import ReelTestSupport
import Testing

@testable import ReelPlayback
import ReelSources

@Suite("Decoders that are given up", .hangLimit)
struct DecoderClaimTests {
  /// A claim that is revoked after so many questions, and refused now and then.
  private final class FickleClaim: DecoderClaim {
    struct State {
      var isOpen = false
      var isResting = false
      var isDenied = false
      /// Questions until it is revoked; nil for never.
      var patience: Int?
      var revocationCount = 0
    }

    let state = Locked(State())

    func take() -> Bool {
      state.withLock { state in
        if !state.isDenied { state.isOpen = true }
        return state.isOpen
      }
    }

    var isRevoked: Bool {
      state.withLock { state in
        guard state.isOpen, let patience = state.patience else { return false }
        guard patience > 0 else { return true }
        state.patience = patience - 1
        return false
      }
    }

    func setResting(_ isResting: Bool) { state.withLock { $0.isResting = isResting } }

    func giveBack() {
      state.withLock { state in
        if state.isOpen, state.patience == 0 { state.revocationCount += 1 }
        state.isOpen = false
        state.patience = nil
      }
    }
  }

  static let clips = [
    "h264-bframes.mp4", "h264-bframes-no-vui.ts", "h264-open-gop.ts", "h264-gops.mp4", "hevc-gops.mp4",
    "hevc-radl.mp4", "hevc-open-gop.mp4", "vp9.webm", "av1.mp4", "h264-size-change.ts", "mpeg2.mpg",
    "vp8.webm",
    "rate-variable.mp4", "h264-interlaced-bff.ts",
  ]

  @Test(
    "At whatever moment a decoder is given up, every frame is shown once, and right", arguments: clips, 0..<6)
  func revoked(name: String, seed: Int) throws {
    var random = SplitMix(seed: seed)
    let session = makeHandTurnedSession(frameCapacity: 2)
    let claim = FickleClaim()
    let pipeline = VideoPipeline(
      session: session,
      options: VideoPipeline.Options(name: "test", logger: silentLogger, claim: claim, threads: 1 + seed % 2),
      isCancelled: { false })
    for packet in try readPackets("media/\(name)") {
      session.append(packet)
    }
    session.end([.video])
    var shown: [Shown] = []
    var turnCount = 0
    while session.head != .drained {
      turnCount += 1
      try #require(turnCount < 20_000)
      claim.state.withLock { state in
        state.isDenied = random.next(below: 4) == 0
        if random.next(below: 3) == 0 { state.patience = random.next(below: 12) }
      }
      do { _ = try pipeline.turn(VideoPipeline.Order(job: session.videoJob)) } catch is CancellationError {}
      if random.next(below: 2) == 0, let frame = session.takeFrame() { shown.append(try Shown(frame)) }
      #expect(claim.state.withLock { !$0.isResting })
    }
    let golden = try Golden(name)
    let isOffset = [".ts", ".mpg"].contains { name.hasSuffix($0) }
    let first = isOffset ? golden.frames[0].ticks : 0
    #expect(shown == golden.frames.map { Shown(time: golden.time($0.ticks - first), md5: $0.md5) })
    #expect(claim.state.withLock { $0.revocationCount } > 0)
    #expect(claim.state.withLock { !$0.isOpen })
  }

  @Test(
    "A stream without timestamps goes on at its last key frame", arguments: ["annexb.h264", "annexb.hevc"])
  func noTimestamps(name: String) throws {
    let session = makeHandTurnedSession(frameCapacity: 3)
    let claim = FickleClaim()
    let pipeline = VideoPipeline(
      session: session,
      options: VideoPipeline.Options(name: "test", logger: silentLogger, claim: claim), isCancelled: { false }
    )
    for packet in try readPackets("media/\(name)") {
      session.append(packet)
    }
    session.end([.video])
    var shown: [Shown] = []
    var turnCount = 0
    while session.head != .drained, turnCount < 1000 {
      turnCount += 1
      if turnCount == 4 { claim.state.withLock { $0.patience = 0 } }
      do { _ = try pipeline.turn(VideoPipeline.Order(job: session.videoJob)) } catch is CancellationError {}
      if let frame = session.takeFrame() { shown.append(try Shown(frame)) }
    }
    #expect(session.head == .drained)
    let golden = try Golden(name)
    #expect(Set(golden.frames.map(\.md5)).isSubset(of: Set(shown.map(\.md5))))
    #expect(zip(shown, shown.dropFirst()).allSatisfy { $0.time < $1.time })
  }
}
