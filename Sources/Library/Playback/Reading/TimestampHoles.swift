internal import ReelCore

/// Detects missing media in the streams of a container by the timestamps of their packets.
///
/// A stream has a hole if a packet is decoded much later than the end of the previous one. Frames without a
/// stated duration may stay on show for long, so the distance must also exceed the usual one.
///
/// A value of one container.
struct TimestampHoles: Sendable {
  /// The maximum time from the end of a packet to the next one.
  enum Limit: Sendable {
    /// The limit for consecutive segments.
    case segments
    /// The limit for a file, in which a frame may stay on show for some time. With B-frames, the duration of
    /// a packet does not state how long.
    case file

    fileprivate var length: MediaTime {
      switch self {
      case .segments: MediaTime(value: 3, timescale: 10)
      // As in `TimestampContinuity`.
      case .file: MediaTime(value: 10, timescale: 1)
      }
    }
  }

  /// Media that is missing from a stream.
  struct Hole: Sendable {
    var kind: MediaPacket.Kind
    var range: Range<MediaTime>
    /// True if damage was found just before.
    var followsDamage: Bool
  }

  private struct Stream: Sendable {
    var place: MediaTime
    var end: MediaTime
    var presentationEnd: MediaTime
    var longestStep = MediaTime.zero
    /// The number of packets for which every hole counts.
    var suspectCount = 0
  }

  /// The initial value of `suspectCount`, because packets may be returned some time after damage was found.
  private static let suspectCount = 32

  private var streams: [MediaPacket.Kind: Stream] = [:]
  private var hole: Hole?

  /// Records damage: the next holes count, however short they are.
  mutating func recordDamage() {
    for kind in streams.keys { streams[kind]?.suspectCount = Self.suspectCount }
  }

  /// Records the next packet of a stream, in the container's time.
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

  /// Returns the last hole that was found, on the container's timeline. Returns it once.
  mutating func take() -> Hole? {
    defer { hole = nil }
    return hole
  }
}
