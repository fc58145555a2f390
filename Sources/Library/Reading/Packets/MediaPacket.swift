package import ReelCore
package import ReelFFmpeg
package import ReelManifest
package import ReelSources
internal import Synchronization

/// One compressed access unit with its place on the player's timeline.
package struct MediaPacket: Sendable {
  package let unit: Packet
  package let span: StreamSpan
  /// The presentation time in the container's time. Decoding order is not presentation order.
  package let mediaTime: MediaTime
  package let duration: MediaTime
  /// True if decoding can start with this packet.
  package let isKey: Bool
  package let byteCount: Int
  /// True for the first packet of its kind in its span.
  package var isFirst = false

  package var kind: TrackKind { span.stream.kind == .audio ? .audio : .video }
  /// The presentation time on the player's timeline. It changes if the first frame corrects the offset.
  package var time: MediaTime { span.time(mediaTime) }
  package var end: MediaTime { span.time(mediaTime + duration) }
}

/// A stretch of one container's stream that one decoder decodes.
///
/// Its offset maps the timestamps of its frames to times on the player's timeline.
package final class StreamSpan: Sendable {
  package let stream: StreamInfo
  package let offset: TimestampOffset
  /// The rung that the packets come from; nil for a media file.
  package let rung: Rung?
  package let loop: LoopIteration
  /// True if the timeline has a gap before the span: segments that are missing or could not be loaded.
  package let followsGap: Bool
  /// True if the first packet of the span has set the offset.
  package let setsOffset: Bool
  /// The reason why the rung was chosen; nil for the first one.
  package let switchCause: RungSwitchCause?
  /// The part of the item's timeline that is shown; nil where nothing is cut (`PeriodCut`).
  package let shown = Locked<(start: MediaTime?, end: MediaTime?)>((nil, nil))

  package init(
    stream: StreamInfo, offset: TimestampOffset, rung: Rung?, loop: LoopIteration, followsGap: Bool,
    setsOffset: Bool = false, switchCause: RungSwitchCause? = nil
  ) {
    self.stream = stream
    self.offset = offset
    self.rung = rung
    self.loop = loop
    self.followsGap = followsGap
    self.setsOffset = setsOffset
    self.switchCause = switchCause
  }

  /// Returns true if both spans use the same timestamps, in the same iteration.
  package func continuesTimeline(of other: StreamSpan) -> Bool {
    loop.iteration == other.loop.iteration && shift == other.shift
      && (offset === other.offset || offset.knownValue == other.offset.knownValue)
  }

  /// The start of the span's iteration on the player's timeline.
  package var shift: MediaTime { loop.shift }

  /// Converts a timestamp of the stream to a time on the player's timeline.
  package func time(ticks: Int64) -> MediaTime { time(stream.time(ticks: ticks)) }

  /// Converts a time of the container to a time on the player's timeline.
  package func time(_ mediaTime: MediaTime) -> MediaTime { mediaTime + offset.value + shift }
}

/// The offset between timestamps and the timeline, shared by all media with the same clock, across rungs.
///
/// If the manifest does not state it, the first packet sets it. The first frame corrects it if it turns out to
/// be earlier.
package final class TimestampOffset: Sendable {
  private struct State {
    var start: MediaTime?
    /// True if only audio has set it.
    var isProvisional = false
  }

  /// The value and the timescale, which is 0 until they are known. Every use of a packet's time reads them, so that is
  /// done without a lock. They are changed under the lock of `state`.
  private let offset: Atomic<WordPair>
  private let state = Locked(State())

  /// - Parameter offset: The difference from media time to presentation time; nil if unknown before the first
  ///   packet.
  package init(offset: MediaTime?) { self.offset = Atomic(Self.words(of: offset)) }

  /// Zero until it is known.
  package var value: MediaTime { knownValue ?? .zero }

  /// Nil until it is known.
  package var knownValue: MediaTime? {
    let words = offset.load(ordering: .acquiring)
    guard words.second != 0 else { return nil }
    return MediaTime(value: Int64(Int(bitPattern: words.first)), timescale: Int32(words.second))
  }

  /// Returns true if nothing has set the offset yet that counts for a stream (`begin(_:at:isMain:)`).
  package func isOpen(isMain: Bool) -> Bool {
    state.withLock { knownValue == nil || $0.isProvisional && isMain }
  }

  /// Sets the offset so that the first packet's time is `start` on the timeline, unless it is known already.
  /// Returns true if this has set it for good.
  ///
  /// - Parameter isMain: False for separate audio: its segments begin at other times than the video's, so its
  ///   offset is provisional until the first video packet.
  @discardableResult
  package func begin(_ media: MediaTime, at start: MediaTime, isMain: Bool = true) -> Bool {
    state.withLock { state in
      guard knownValue == nil || state.isProvisional && isMain else { return false }
      offset.store(Self.words(of: start - media), ordering: .releasing)
      state.start = isMain ? start : nil
      state.isProvisional = !isMain
      return isMain
    }
  }

  /// Corrects the offset with the first frame of the span that set it: the frame gets the time of the first
  /// packet.
  package func settle(firstFrame media: MediaTime) {
    state.withLock { state in
      guard let start = state.start else { return }
      state.start = nil
      offset.store(Self.words(of: start - media), ordering: .releasing)
    }
  }

  private static func words(of time: MediaTime?) -> WordPair {
    guard let time else { return WordPair(first: 0, second: 0) }
    return WordPair(first: UInt(bitPattern: Int(time.value)), second: UInt(time.timescale))
  }
}

/// One iteration of a looping item. The first is number 0.
package struct LoopIteration: Sendable, Hashable {
  /// The number of the iteration, from 0.
  package var iteration = 0
  /// The start of the iteration on the player's timeline, which continues from iteration to iteration.
  package var shift = MediaTime.zero

  package init(iteration: Int = 0, shift: MediaTime = MediaTime.zero) {
    self.iteration = iteration
    self.shift = shift
  }
}
