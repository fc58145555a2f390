package import ReelCore

/// Joins the timestamps of a container whose format allows them to be discontinuous (MPEG-TS, ISO/IEC 13818-1
/// §2.4.3.5), so that they continue across a jump.
///
/// A packet's position is its decoding timestamp, or its presentation timestamp if it has none. A stream
/// jumps if its position is more than `forwardThreshold` after the end of its last packet, or more than
/// `backwardThreshold` before the start of it. All later times are shifted, so that they continue at the end
/// of the last packet of that stream, and after the last presentation time.
///
/// The streams share the shifts, and so stay synchronous. The first stream that jumps sets the new one. Each
/// of the others keeps its own until it jumps itself, because packets from before the jump may still be
/// interleaved. It then uses the shift set meanwhile that brings it nearest to its last packet, instead of
/// one of its own. A packet that is far after its stream's last packet but near to another stream's is a gap
/// of that stream, such as a pause in the audio, and not a jump.
///
/// A fall or rise by 2^33 ticks of 90 kHz (a wrap of MPEG-TS's 33 bits) is undone exactly and not counted.
///
/// A value for one container and one span: after a seek, a new one begins. Packets arrive in the container's
/// order.
package struct TimestampContinuity: Sendable {
  /// The longest gap that does not count as a jump.
  var forwardThreshold = MediaTime(value: 10, timescale: 1)
  /// The largest step back that does not count as a jump. Presentation timestamps are not in order.
  private static let backwardThreshold = MediaTime(value: 1, timescale: 1)
  /// The number of jumps. A jump of several streams counts once.
  package private(set) var jumpCount = 0

  private var streams: [Int: Stream] = [:]
  /// The latest shifts, in the order of the jumps.
  private var epochs = [Epoch(number: 0, shift: .zero)]

  package init() {}

  /// Returns the shift to add to the timestamps of the next packet of `stream`.
  ///
  /// - Parameters:
  ///   - stream: The index of the stream in its container.
  ///   - dts: The decoding timestamp in `timeBase`; nil if the packet has none.
  ///   - pts: The presentation timestamp in `timeBase`; nil if the packet has none.
  ///   - duration: The duration in `timeBase`; 0 if unknown: the distance of the last two packets is used.
  ///   - timeBase: Seconds per tick.
  package mutating func shift(
    stream: Int, dts: Int64?, pts: Int64?, duration: Int64, timeBase: Rational
  ) -> MediaTime {
    guard timeBase.isPositive else { return streams[stream]?.shift ?? newest.shift }
    let time = { (ticks: Int64) in
      MediaTime(value: ticks, timescale: timeBase.denominator) * Int64(timeBase.numerator)
    }
    let length = duration > 0 ? time(duration) : nil
    guard let ticks = dts ?? pts else {
      streams[stream]?.extend(by: length)
      return streams[stream]?.shift ?? newest.shift
    }
    let place = time(ticks)
    let pts = pts.map { time(Self.unwrapped(pts: $0, nextTo: ticks, timeBase: timeBase)) } ?? place
    // A time further ahead is invalid.
    let presentation = min(max(pts, place), place + Self.reorder)
    var state: Stream
    if let known = streams[stream] {
      state = known
      if let epoch = epoch(of: place, presentedAt: presentation, in: known, stream: stream) {
        state.epoch = epoch.number
        state.shift = epoch.shift
        state.hasJumped = true
      }
    } else {
      let epoch = nearestEpoch(to: place)
      state = Stream(epoch: epoch.number, shift: epoch.shift, at: place)
    }
    state.advance(to: place, presentedAt: presentation, length: length)
    streams[stream] = state
    if let index = epochs.firstIndex(where: { $0.number == state.epoch }) { epochs[index].extend(to: place) }
    return state.shift
  }

  /// Replaces the streams. The first packet of a new stream jumps if it steps back further than audio may
  /// overlap; a frame jumps if it steps back at all.
  ///
  /// - Parameter frames: The index of the stream with frames.
  package mutating func beginStreams(frames: Int?) {
    for index in streams.keys { streams[index]?.overlap = index == frames ? .zero : Self.overlap }
  }

  /// Moves `pts` to the same side of a 33-bit wrap as `dts`. Packets near a wrap may have one timestamp before
  /// it and the other after it.
  package static func unwrapped(pts: Int64, nextTo dts: Int64, timeBase: Rational) -> Int64 {
    guard timeBase.isPositive else { return pts }
    let ticks = wrap.ticks(timescale: timeBase.denominator) / Int64(timeBase.numerator)
    let (distance, overflow) = pts.subtractingReportingOverflow(dts)
    guard !overflow, ticks > 0, distance.magnitude > ticks / 2, distance.magnitude <= ticks / 2 * 3 else {
      return pts
    }
    let (moved, isBeyond) = pts.addingReportingOverflow(distance < 0 ? ticks : -ticks)
    return isBeyond ? pts : moved
  }

  // MARK: - Private

  /// The time between two jumps.
  private struct Epoch: Sendable {
    var number: Int
    var shift: MediaTime
    /// The range of the packets' places in the container's time.
    var places: ClosedRange<MediaTime>?

    mutating func extend(to place: MediaTime) {
      guard let known = places else {
        places = place...place
        return
      }
      if !known.contains(place) { places = min(known.lowerBound, place)...max(known.upperBound, place) }
    }

    /// Returns the distance of `place` from the packets of this epoch; nil if it is too far to belong to it.
    func distance(to place: MediaTime) -> MediaTime? {
      guard let places else { return nil }
      let distance = max(places.lowerBound - place, place - places.upperBound, .zero)
      return distance <= interleaving ? distance : nil
    }
  }

  private struct Stream: Sendable {
    var epoch: Int
    var shift: MediaTime
    /// The start and end of the last packet in the container's time.
    var start: MediaTime
    var end: MediaTime
    /// The time at which all packets so far have been presented.
    var presentationEnd: MediaTime
    /// The usual distance of two packets.
    var step: MediaTime?
    /// The time of the last packet that states one, and the number of packets after it.
    var timed: (place: MediaTime, followers: Int)
    /// Set when other streams have begun: the maximum time by which the next packet may begin before the end
    /// of the last.
    var overlap: MediaTime?
    /// True if the next packet's shift differs from the last one's.
    var hasJumped = false

    init(epoch: Int, shift: MediaTime, at place: MediaTime) {
      self.epoch = epoch
      self.shift = shift
      start = place
      end = place
      presentationEnd = place
      timed = (place, 0)
    }

    /// Places a packet without a timestamp after the last one.
    mutating func extend(by length: MediaTime?) {
      start = end
      end = end + (length ?? step ?? .zero)
      timed.followers += 1
    }

    mutating func advance(to place: MediaTime, presentedAt presentation: MediaTime, length: MediaTime?) {
      let distance =
        timed.followers == 0
        ? place - start : MediaTime(seconds: (place - timed.place).seconds / Double(timed.followers + 1))
      if distance > .zero, distance < MediaTime(value: 1, timescale: 1) { step = distance }
      start = place
      timed = (place, 0)
      let length = length ?? step ?? TimestampContinuity.defaultStep
      end = place + length
      presentationEnd = hasJumped ? presentation + length : max(presentationEnd, presentation + length)
      hasJumped = false
      overlap = nil
    }

    /// Returns the distance of `place` plus `change` from the last packet.
    func distance(to place: MediaTime, change: MediaTime) -> MediaTime {
      let moved = place + change
      if moved < start { return start - moved }
      return moved > end ? moved - end : .zero
    }
  }

  /// The length of a packet if it is unknown.
  private static let defaultStep = MediaTime(value: 1, timescale: 25)
  private static let overlap = MediaTime(value: 1, timescale: 10)
  /// The maximum time that a frame waits for frames shown before it.
  private static let reorder = MediaTime(value: 1, timescale: 1)
  private static let wrap = MediaTime(value: 1 << 33, timescale: 90_000)
  /// The largest distance between two interleaved streams of a container.
  private static let interleaving = MediaTime(value: 5, timescale: 1)
  /// The maximum number of shifts that a stream may be behind and still find its own.
  private static let maximumEpochCount = 16

  private var newest: Epoch { epochs[epochs.count - 1] }

  /// Returns the epoch that `place` belongs to; nil for that of the stream's last packet.
  private mutating func epoch(
    of place: MediaTime, presentedAt presentation: MediaTime, in state: Stream, stream: Int
  ) -> Epoch? {
    var best: Epoch?
    var change = MediaTime.zero
    for epoch in epochs where epoch.number > state.epoch {
      let other = epoch.shift - state.shift
      if state.distance(to: place, change: other) < state.distance(to: place, change: change) {
        best = epoch
        change = other
      }
    }
    if isContinuous(place + change, presentedAt: presentation + change, after: state) { return best }
    if place > state.end, isNearAnother(place, in: state.epoch, than: stream) { return nil }
    for wrap in [Self.wrap, .zero - Self.wrap]
    where isContinuous(place + wrap, presentedAt: presentation + wrap, after: state) {
      return append(shift: state.shift + wrap)
    }
    let isFollowing = state.overlap == nil
    if isFollowing,
      let epoch = epochs.first(where: { $0.number > state.epoch && $0.distance(to: place) != nil })
    {
      return epoch
    }
    jumpCount += 1
    return append(shift: state.shift + max(state.end - place, state.presentationEnd - presentation))
  }

  /// Returns the epoch nearest to a stream's first packet; of equals, the later one.
  private func nearestEpoch(to place: MediaTime) -> Epoch {
    var best = newest
    var least = best.distance(to: place)
    for epoch in epochs.reversed() {
      guard let distance = epoch.distance(to: place), least.map({ distance < $0 }) ?? true else { continue }
      best = epoch
      least = distance
    }
    return best
  }

  private func isContinuous(
    _ place: MediaTime, presentedAt presentation: MediaTime, after state: Stream
  ) -> Bool {
    guard place <= state.end + forwardThreshold else { return false }
    guard let overlap = state.overlap else { return place + Self.backwardThreshold >= state.start }
    // The tolerance covers rounding to ticks.
    return presentation + max(overlap, MediaTime(value: 1, timescale: 1000)) >= state.presentationEnd
  }

  private func isNearAnother(_ place: MediaTime, in epoch: Int, than stream: Int) -> Bool {
    streams.contains { index, state in
      index != stream && state.epoch == epoch && state.start <= place + Self.interleaving
        && place <= state.end + Self.interleaving
    }
  }

  private mutating func append(shift: MediaTime) -> Epoch {
    let epoch = Epoch(number: newest.number + 1, shift: shift)
    epochs.append(epoch)
    if epochs.count > Self.maximumEpochCount { epochs.removeFirst() }
    return epoch
  }
}
