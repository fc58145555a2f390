package import ReelCore
import ReelManifest

extension VirtualHLS {
  /// A media playlist: one rung through all periods.
  package struct Track: Sendable {
    package enum Kind: String, Sendable {
      /// Video, with or without muxed audio.
      case video
      case audio
      /// WebVTT.
      case text
    }

    /// Its place in `VirtualHLS.tracks`.
    package let index: Int
    package let kind: Kind
    /// The kind and a number from 0 on, `video-0`: letters of a path.
    package let name: String
    /// The properties of the rungs, the best of all periods.
    package let size: PixelSize?
    package let bitsPerSecond: Int?
    package let averageBitsPerSecond: Int?
    package let codecs: [String]
    package let frameRate: Rational?
    package let language: String?
    package let label: String?
    package let roles: [String]
    let videoRange: String?
    let channels: String?
    let container: SegmentContainer
    let hasIndependentSegments: Bool
    let parts: [Part]

    /// Those that only stand for what is missing included.
    package var segmentCount: Int { parts.last.map { $0.firstIndex + $0.list.count } ?? 0 }

    /// The longest segment in whole seconds, as EXTINF values are rounded for EXT-X-TARGETDURATION (RFC 8216
    /// §4.3.3.1); at least 1.
    var targetDuration: Int64 {
      var longest: Int64 = 0
      for part in parts { part.forEach { longest = max(longest, $2) } }
      let (sum, overflow) = longest.addingReportingOverflow(500_000_000)
      return max(1, (overflow ? longest : sum) / 1_000_000_000)
    }

    /// The segment at `index`, from 0 up to `segmentCount`; nil if none is, or nothing but a gap.
    func segment(at index: Int) -> SegmentReference? {
      var (low, high) = (0, parts.count)
      while low < high {
        let middle = (low + high) / 2
        if parts[middle].firstIndex > index { high = middle } else { low = middle + 1 }
      }
      guard index >= 0, low > 0 else { return nil }
      let part = parts[low - 1]
      guard !part.isFiller, index - part.firstIndex < part.list.count else { return nil }
      return part.list[index - part.firstIndex]
    }
  }

  /// The part of a track in one period.
  struct Part: Sendable {
    var list: SegmentList
    /// True if the segments are another track's, and stand for what this one lacks.
    var isFiller: Bool
    /// The index in the track of the first segment.
    var firstIndex: Int
    /// The period's start, if another period precedes it.
    var start: MediaTime?
    /// The next period's start, if there is one.
    var end: MediaTime?

    /// Calls `body` with the index in the track, the segment and its length in nanoseconds, in order.
    ///
    /// Media beyond the end of the period does not count, because the other tracks do not have it.
    func forEach(_ body: (_ index: Int, _ segment: SegmentReference, _ nanoseconds: Int64) -> Void) {
      guard var segment = list.first else { return }
      let limit = end?.nanoseconds ?? .max
      var position = min((start ?? segment.start).nanoseconds, limit)
      for index in list.indices {
        let next = index + 1 < list.endIndex ? list[index + 1] : nil
        var boundary = (next?.start ?? end ?? (segment.start + segment.duration)).nanoseconds
        boundary = min(max(boundary, position), limit)
        let (length, overflow) = boundary.subtractingReportingOverflow(position)
        body(firstIndex + index, segment, overflow ? .max : length)
        position = boundary
        if let next { segment = next }
      }
    }
  }
}

extension MediaTime {
  /// Rounded to the nearest nanosecond, halves up; clamped to 64 bits.
  fileprivate var nanoseconds: Int64 {
    let doubled = Int128(value) * 2_000_000_000 + Int128(timescale)
    let divisor = Int128(timescale) * 2
    let (quotient, remainder) = doubled.quotientAndRemainder(dividingBy: divisor)
    return Int64(clamping: remainder < 0 ? quotient - 1 : quotient)
  }
}
