import Foundation
import ReelCore
import ReelFFmpeg
import ReelTestSupport

@testable import ReelPlayback

/// Makes a session that loads nothing by itself: a test puts packets into it, and turns its decoders.
func makeHandTurnedSession(frameCapacity: Int = 1000, start: MediaTime? = nil) -> ItemSession {
  let environment = SessionEnvironment(
    fetcher: FixtureFetcher(), loading: LoadingConfiguration(), clock: SystemMonotonicClock(),
    runtime: SystemRuntime.shared, decoders: LibavDecoders(), logger: silentLogger,
    thresholds: BufferingThresholds(), retryPolicy: ItemRetryPolicy(), ringFrameCapacity: frameCapacity,
    ringByteCapacity: .max, isAdaptive: false)
  let session = ItemSession(
    PlayerItem(.url(URL(fileURLWithPath: "/none"))), environment: environment, start: start, wantsAudio: true,
    loops: true,
    prefersThroughput: false,
    delegate: ItemSession.Delegate(
      wake: {}, event: { _ in }, progress: {}, filled: {}, decoded: { _ in }))
  session.change { state, _ in
    state.packets.limits = ForwardBuffer.Limits(target: MediaTime(value: 1000, timescale: 1))
  }
  return session
}

extension ItemSession {
  func append(_ packet: MediaPacket, _ kind: MediaPacket.Kind) {
    change { state, _ in state.packets.append(packet, kind) }
  }

  func end(_ kinds: Set<MediaPacket.Kind>) { change { state, _ in state.packets.end(kinds) } }

  /// Seeks within the packets. Returns true if nothing would have to be loaded.
  func seekInside(to time: MediaTime, tolerance: MediaTime = .zero) -> Bool {
    change { state, _ in
      let reload = state.packets.seek(to: time)
      state.moveDecoders(to: DecodingJob(target: time, tolerance: tolerance))
      return reload.isEmpty
    }
  }

  var head: FrameRing.Head { state.read { $0.frames.head } }

  func takeFrame(of job: DecodingJob? = nil) -> TimedFrame? {
    var frame: TimedFrame?
    change { state, _ in
      if job.map({ $0 === state.videoJob }) ?? true { frame = state.frames.take() }
    }
    return frame
  }

  func takeAudio() -> [AudioQueue.Chunk] { change { state, _ in state.audio.take(until: nil) } }
}
