internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
internal import ReelSources

/// Cuts the media of a container that reaches beyond its period, which is not presented (ISO/IEC 23009-1 §5.3.9.6).
///
/// Times of periods are rounded, and packagers forget the delay of B-frames and of audio encoders. Media is therefore cut
/// only if there is more of it than such errors explain. At the end, packets wait until that is known: until a later one,
/// or until the container ends.
///
/// Packets that others refer to are read, and their frames are left out (`StreamSpan.shown`).
struct PeriodCut {
  private struct Stream {
    /// False if the timestamps do not fit the manifest, which then says nothing about them.
    let fits: Bool
    var held: [MediaPacket] = []
    /// True if media after the period is cut.
    var isCut = false
    /// True once nothing is left that others refer to.
    var isOver = false
  }

  /// The end of the period; nil if unknown.
  let end: MediaTime?
  private let start: MediaTime
  /// The start of the first segment.
  private let origin: MediaTime
  private var streams: [TrackKind: Stream] = [:]
  private var ready: [MediaPacket] = []

  private static let startTolerance = MediaTime(value: 1, timescale: 10)
  private static let endTolerance = MediaTime(value: 1, timescale: 5)

  /// Nil for a live presentation, whose periods may still change, and for HLS, which has no periods.
  init?(_ place: SegmentSource.Place, in period: Period) {
    guard place.track.supply.timing == nil, place.segment.timestampOffset != nil else { return nil }
    start = period.start
    origin = place.segment.start
    end = period.duration.map { period.start + $0 }
  }

  /// True if no packet of the container is needed any more.
  var isOver: Bool { ready.isEmpty && !streams.isEmpty && streams.values.allSatisfy(\.isOver) }

  /// Returns true if media up to `time` reaches further beyond the period than errors of rounding explain.
  func isExceeded(by time: MediaTime) -> Bool {
    end.map { origin < $0 && time >= $0 + Self.endTolerance } ?? false
  }

  /// Takes the next packet of the container.
  mutating func append(_ packet: MediaPacket) {
    let time = packet.time - packet.span.shift
    let distance = max(time - origin, origin - time)
    var stream = streams[packet.kind] ?? Stream(fits: distance <= TimestampMapper.tolerance)
    defer { streams[packet.kind] = stream }
    guard stream.fits, end.map({ origin < $0 }) ?? true else { return ready.append(packet) }
    if time + Self.startTolerance < start { packet.span.shown.withLock { $0.start = start } }
    guard let end else { return ready.append(packet) }
    if !stream.isCut, time >= end + Self.endTolerance {
      stream.isCut = true
      packet.span.shown.withLock { $0.end = end }
      for held in stream.held { append(held, to: &stream, before: end) }
      stream.held = []
    }
    if stream.isCut {
      append(packet, to: &stream, before: end)
    } else if packet.end - packet.span.shift > end || !stream.held.isEmpty {
      stream.held.append(packet)
    } else {
      ready.append(packet)
    }
  }

  /// Returns the next packet to read; nil if there is none so far.
  mutating func next() -> MediaPacket? { ready.isEmpty ? nil : ready.removeFirst() }

  /// Releases the packets that still wait when the container ends.
  mutating func finish() {
    for kind in TrackKind.allCases { ready += streams[kind]?.held ?? [] }
    streams = [:]
  }

  // MARK: - Private

  /// A packet that is decoded after the end is no reference of one that is shown before it.
  private mutating func append(_ packet: MediaPacket, to stream: inout Stream, before end: MediaTime) {
    let span = packet.span
    let decodedAt = packet.unit.decodingTicks.map { span.time(ticks: $0) - span.shift }
    if packet.kind == .audio
      ? packet.time - span.shift >= end : (decodedAt ?? packet.time - span.shift) >= end
    {
      stream.isOver = true
    } else {
      ready.append(packet)
    }
  }
}
