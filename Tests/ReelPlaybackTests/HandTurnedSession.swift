import Foundation
import ReelCore
import ReelFFmpeg
import ReelTestSupport

@testable import ReelPlayback
@testable import ReelReading
@testable import ReelSources

/// Makes a session that loads nothing by itself: a test puts packets into it, and turns its decoders. Nothing is
/// presented either.
func makeHandTurnedSession(frameCapacity: Int = 1000, loops: Bool = true) -> ItemSession {
  var configuration = PlayerConfiguration()
  configuration.ringFrameCapacity = frameCapacity
  configuration.ringByteCapacity = .max
  let core = PlayerCore(
    fetcher: FixtureFetcher(), configuration: configuration, gate: nil, logger: silentLogger)
  core.presenter.stop()
  let session = ItemSession(PlayerItem(.url(URL(fileURLWithPath: "/none"))), core: core)
  core.change { state, out in
    state.settings.actionAtItemEnd = loops ? .loop : .pause
    _ = state.replace(with: session, start: nil, detaches: false, at: configuration.clock.now, &out)
    state.item.packets.limits = ForwardBuffer.Limits(target: MediaTime(value: 1000, timescale: 1))
  }
  return session
}

extension ItemSession {
  /// What `body` sees in the state of the item, which the player has not left.
  func look<Result>(_ body: (borrowing ItemState) -> sending Result) -> sending Result {
    guard let result = read(body) else { preconditionFailure("the player has left the item") }
    return result
  }

  func append(_ packet: MediaPacket) { change { state, _ in state.packets.append(packet) } }

  func end(_ kinds: Set<TrackKind>) { change { state, _ in state.packets.end(kinds) } }

  /// Seeks within the packets. Returns true if nothing would have to be loaded.
  func seekInside(to time: MediaTime, tolerance: MediaTime = .zero) -> Bool {
    let isInside = change { state, _ in
      let reload = state.packets.seek(to: time)
      state.moveDecoders(to: DecodingJob(target: time, tolerance: tolerance))
      return reload.isEmpty
    }
    return isInside == true
  }

  var videoJob: DecodingJob { look { $0.videoJob } }

  var head: FrameRing.Head { look { $0.frames.head } }

  func takeFrame() -> VideoFrame? { change { state, _ in state.frames.take() } ?? nil }

  func takeAudio() -> [AudioQueue.Chunk] { change { state, _ in state.audio.takeAll() } ?? [] }

  var isAudioDrained: Bool { look { $0.audio.isDrained } }
}

extension AudioQueue {
  /// Takes the audio due by `time`; nil for all of it.
  mutating func takeAll(until time: MediaTime? = nil) -> [Chunk] {
    var taken: [Chunk] = []
    while let chunk = take(until: time) { taken.append(chunk) }
    return taken
  }
}
