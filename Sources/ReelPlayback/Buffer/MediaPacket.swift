internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// One compressed access unit with its place on the player's timeline.
struct MediaPacket: Sendable {
  enum Kind: Sendable, Hashable, CaseIterable {
    case video
    case audio
  }

  let box: SharedPacket
  let span: StreamSpan
  /// When it is presented, as its container counts; decoding order is not presentation order.
  let mediaTime: MediaTime
  let duration: MediaTime
  /// Decoding can start here.
  let isKey: Bool
  let byteCount: Int
  /// The first of its kind in its span.
  var isFirst = false

  /// When it is presented on the player's timeline. It changes where the first frame puts the offset right.
  var time: MediaTime { span.time(mediaTime) }
  var end: MediaTime { span.time(mediaTime + duration) }
}

/// What packets have in common that one decoder decodes: a stretch of one container's stream.
///
/// The timestamps of its frames become times on the player's timeline through its offset.
final class StreamSpan: Sendable {
  let stream: StreamInfo
  let offset: TimestampOffset
  /// The rung that it comes from; nil for a media file.
  let rung: Rung?
  let loop: LoopIteration
  /// True where the timeline has a hole before it: segments that could not be had, or are not there.
  let followsGap: Bool
  /// True where its first packet has placed the offset on the timeline.
  let setsOffset: Bool

  init(
    stream: StreamInfo, offset: TimestampOffset, rung: Rung?, loop: LoopIteration, followsGap: Bool,
    setsOffset: Bool = false
  ) {
    self.stream = stream
    self.offset = offset
    self.rung = rung
    self.loop = loop
    self.followsGap = followsGap
    self.setsOffset = setsOffset
  }

  /// True where both count by the same clock, in the same time through the item.
  func continuesTimeline(of other: StreamSpan) -> Bool {
    loop.iteration == other.loop.iteration && shift == other.shift
      && (offset === other.offset || offset.knownValue == other.offset.knownValue)
  }

  /// Where the time through the item that it belongs to begins.
  var shift: MediaTime { loop.shift }

  /// A timestamp of the stream as a time on the player's timeline.
  func time(ticks: Int64) -> MediaTime { time(stream.time(ticks: ticks)) }

  /// A time as the container counts it as one on the player's timeline.
  func time(_ mediaTime: MediaTime) -> MediaTime { mediaTime + offset.value + shift }
}

/// How the timestamps of media lie on the timeline: one for all that counts by the same clock, whatever rung it is of.
///
/// Where the manifest does not tell, the first packet decides, and the first frame, where that turns out to be an
/// earlier one, puts it right.
final class TimestampOffset: Sendable {
  private struct State {
    var offset: MediaTime?
    var start: MediaTime?
    /// From sound alone.
    var isProvisional = false
  }

  private let state: Locked<State>

  /// - Parameter offset: added to media time to get presentation time; nil where it is not known before the first packet.
  init(offset: MediaTime?) { state = Locked(State(offset: offset)) }

  /// Zero before it is known.
  var value: MediaTime { state.withLock { $0.offset } ?? .zero }

  /// Nil before it is known.
  var knownValue: MediaTime? { state.withLock { $0.offset } }

  /// The first packet's time is `start` on the timeline, unless the offset is known already. True where this has placed
  /// the offset for good.
  ///
  /// - Parameter isMain: false for sound that is a stream of its own: its segments begin at times that are not the
  ///   frames', and it places the offset until a frame's packet comes.
  @discardableResult
  func begin(_ media: MediaTime, at start: MediaTime, isMain: Bool = true) -> Bool {
    state.withLock { state in
      guard state.offset == nil || state.isProvisional && isMain else { return false }
      state.offset = start - media
      state.start = isMain ? start : nil
      state.isProvisional = !isMain
      return isMain
    }
  }

  /// The first frame of the span that has placed the offset: it stands where the first packet was put.
  func settle(firstFrame media: MediaTime) {
    state.withLock { state in
      guard let start = state.start else { return }
      state.start = nil
      state.offset = start - media
    }
  }
}
