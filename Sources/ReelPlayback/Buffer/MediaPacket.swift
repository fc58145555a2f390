internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// One compressed access unit with its place on the player's timeline.
struct MediaPacket: Sendable {
  enum Kind: Sendable, Hashable, CaseIterable {
    case video
    case audio
  }

  let box: PacketBox
  let run: MediaRun
  /// When it is presented; decoding order is not presentation order.
  let time: MediaTime
  let duration: MediaTime
  /// Decoding can start here.
  let isKey: Bool
  let byteCount: Int

  var end: MediaTime { time + duration }
}

/// What packets have in common that one decoder decodes: a stretch of one container's stream.
///
/// The timestamps of its pictures become times on the player's timeline through its domain.
final class MediaRun: Sendable {
  let stream: StreamInfo
  let domain: TimestampDomain
  /// The rung that it comes from; nil for a media file.
  let rung: Rung?
  /// Added for each time that the item has begun anew (loop).
  let shift: MediaTime
  /// Which time through the item it is, from 0.
  let iteration: Int
  /// True where the timeline has a hole before it: segments that could not be had, or are not there.
  let followsGap: Bool

  init(
    stream: StreamInfo, domain: TimestampDomain, rung: Rung?, shift: MediaTime, iteration: Int,
    followsGap: Bool
  ) {
    self.stream = stream
    self.domain = domain
    self.rung = rung
    self.shift = shift
    self.iteration = iteration
    self.followsGap = followsGap
  }

  /// A timestamp of the stream as a time on the player's timeline.
  func time(ticks: Int64) -> MediaTime { stream.time(ticks: ticks) + domain.offset + shift }
}

/// How the timestamps of media lie on the timeline: one for all that counts by the same clock, whatever rung it is of.
///
/// Where the manifest does not tell, the first packet decides, and the first picture, where that turns out to be an
/// earlier one, puts it right.
final class TimestampDomain: Sendable {
  private struct State {
    var offset: MediaTime?
    var start: MediaTime?
  }

  private let state: Locked<State>

  /// - Parameter offset: added to media time to get presentation time; nil where it is not known before the first packet.
  init(offset: MediaTime?) { state = Locked(State(offset: offset)) }

  /// Zero before it is known.
  var offset: MediaTime { state.withLock { $0.offset } ?? .zero }

  /// Nil before it is known.
  var knownOffset: MediaTime? { state.withLock { $0.offset } }

  /// The first packet's time is `start` on the timeline, unless the domain is known already.
  func begin(_ media: MediaTime, at start: MediaTime) {
    state.withLock { state in
      guard state.offset == nil else { return }
      state.offset = start - media
      state.start = start
    }
  }

  /// The first picture that was shown of the domain: it stands where the first packet was put.
  func settle(firstPicture media: MediaTime) {
    state.withLock { state in
      guard let start = state.start else { return }
      state.start = nil
      state.offset = start - media
    }
  }
}
