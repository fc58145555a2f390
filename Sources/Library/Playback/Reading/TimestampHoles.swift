internal import ReelCore

/// Finds the places where media is absent from the streams of a container, by the timestamps of their packets.
///
/// A stream has a hole if a packet is decoded much later than the one before it has ended. Frames without a stated
/// duration may stay on show for long, so the distance also has to be above the usual one.
///
/// A value of one container.
struct TimestampHoles: Sendable {
  /// How long a packet may be later than the end of the one before it.
  enum Limit: Sendable {
    /// Segments that follow one another.
    case segments
    /// A file, in which a frame may stay on show for some time. With B-frames, the duration of a packet does not tell for how
    /// long.
    case file

    fileprivate var length: MediaTime {
      switch self {
      case .segments: MediaTime(value: 3, timescale: 10)
      // As in `TimestampContinuity`.
      case .file: MediaTime(value: 10, timescale: 1)
      }
    }
  }

  /// Media that is absent from a stream.
  struct Hole: Sendable {
    var kind: MediaPacket.Kind
    var range: Range<MediaTime>
    /// Damage was found just before.
    var followsDamage: Bool
  }

  private struct Stream: Sendable {
    var place: MediaTime
    var end: MediaTime
    var presentationEnd: MediaTime
    var longestStep = MediaTime.zero
    /// The number of packets for which any hole counts.
    var suspectCount = 0
  }

  /// Packets may be returned some time after damage was found.
  private static let suspectCount = 32

  private var streams: [MediaPacket.Kind: Stream] = [:]
  private var hole: Hole?

  /// Something is damaged: the next holes count, however short they are.
  mutating func recordDamage() {
    for kind in streams.keys { streams[kind]?.suspectCount = Self.suspectCount }
  }

  /// Notes the next packet of a stream, by the container's time.
  mutating func record(
    _ kind: MediaPacket.Kind, decodedAt place: MediaTime, presentedAt time: MediaTime, duration: MediaTime,
    limit: Limit
  ) {
    let end = time + duration
    guard var stream = streams[kind] else {
      streams[kind] = Stream(place: place, end: place + duration, presentationEnd: end)
      return
    }
    let gap = place - stream.end
    let tolerance =
      stream.suspectCount > 0
      ? MediaTime(seconds: duration.seconds / 2) : max(limit.length, stream.longestStep * 2)
    if gap > tolerance, gap > .zero {
      let start = min(stream.presentationEnd, time - gap)
      if start < time {
        hole = Hole(kind: kind, range: start..<time, followsDamage: stream.suspectCount > 0)
      }
      stream.suspectCount = 0
    } else {
      stream.longestStep = max(stream.longestStep, place - stream.place)
      stream.suspectCount = max(0, stream.suspectCount - 1)
    }
    stream.presentationEnd = gap > tolerance ? end : max(stream.presentationEnd, end)
    (stream.place, stream.end) = (place, place + duration)
    streams[kind] = stream
  }

  /// The last hole that was found, on the container's timeline. Returned once.
  mutating func take() -> Hole? {
    defer { hole = nil }
    return hole
  }
}
