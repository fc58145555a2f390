package import Foundation
package import ReelCore

/// The timing for following a presentation that gains segments.
package struct LiveTiming: Sendable {
  /// When to reload the manifest.
  package enum Reload: Sendable, Hashable {
    /// Never: segments depend only on the clock (an MPD without @minimumUpdatePeriod).
    case never
    /// This long after the last reading (ISO/IEC 23009-1 §5.3.1.2, @minimumUpdatePeriod). Zero: whenever more
    /// segments are needed than are known.
    case after(MediaTime)
    /// A playlist's target duration after the last reading if it had changed, and half of it otherwise (RFC
    /// 8216 §6.3.4).
    case targetDuration(MediaTime)
  }

  package var reload: Reload
  /// The distance from the end of the last segment at which playback begins, by the manifest's rule or the
  /// format's.
  package var delay: MediaTime
  /// Segments that begin less than this before the edge stay available; nil for all of them (@timeShiftBufferDepth).
  package var timeShiftBufferDepth: MediaTime?
  /// The duration that no segment exceeds (@maxSegmentDuration); nil if not stated.
  package var maxSegmentDuration: MediaTime?
  /// The wall-clock time of the timeline's zero; nil if segments are not tied to the clock (HLS).
  package var availabilityStart: WallTime?
  /// The end of the presentation; nil if unknown.
  package var availabilityEnd: WallTime?
  /// The URLs to reload the manifest from, in order of preference; empty for its own URL.
  package var locations: [URL] = []
  /// The sources of the time, in order of preference (UTCTiming); empty for this machine's clock.
  package var clockSources: [ClockSource] = []
  /// The correction to the clock, if none of the listed segments is available according to it; nil if the clock fits.
  ///
  /// By the corrected clock, the newest listed segment ends now. The presentation is then followed with that clock.
  package var drift: MediaTime?
  /// The presentation of the same manifest at another time; nil if it does not depend on the time.
  ///
  /// Throws `badManifest`.
  package var presentation: (@Sendable (_ now: WallTime) throws(ReelError) -> Presentation)?

  package init(
    reload: Reload, delay: MediaTime, timeShiftBufferDepth: MediaTime? = nil,
    availabilityStart: WallTime? = nil, availabilityEnd: WallTime? = nil
  ) {
    self.reload = reload
    self.delay = delay
    self.timeShiftBufferDepth = timeShiftBufferDepth
    self.availabilityStart = availabilityStart
    self.availabilityEnd = availabilityEnd
  }
}

extension LiveTiming {
  /// The error that explains `drift`; nil if there is none.
  package var driftFault: ReelError? { drift.map(Self.driftFault) }

  static func driftFault(_ drift: MediaTime) -> ReelError {
    let seconds = (drift.seconds * 1000).rounded() / 1000
    return ReelError(
      .badManifest,
      "by the clock, no segment of the timeline is available yet: the newest ends \(seconds) s in the future, and is assumed to end"
        + " now (ISO/IEC 23009-1 §5.3.9.5.3)",
      place: .element("MPD"),
      advice: "compare this machine's clock, @availabilityStartTime and the timeline")
  }
}

/// A source of the time (UTCTiming, ISO/IEC 23009-1 §5.8.5.7).
package enum ClockSource: Sendable, Hashable {
  /// The approximate time at which the manifest was made (`urn:mpeg:dash:utc:direct:2014`).
  case direct(WallTime)
  /// The Date field of the answer to a HEAD request (`urn:mpeg:dash:utc:http-head:2014`).
  case httpHead(URL)
  /// An `xs:dateTime` as the body of an answer (`http-xsdate`, and `http-iso`, which is read in the same
  /// way).
  case httpBody(URL)
}

extension LiveTiming {
  /// Returns when to reload the manifest, counted from the start of the last reading; nil for never.
  ///
  /// A manifest is read at most twice a second, and at least every two minutes.
  ///
  /// - Parameters:
  ///   - hasChanged: Whether the last reading brought anything new.
  ///   - segmentDuration: The duration of the newest segment.
  package func reloadDelay(hasChanged: Bool, segmentDuration: MediaTime?) -> MediaTime? {
    let shortest = MediaTime(value: 1, timescale: 2)
    let delay: MediaTime
    switch reload {
    case .never: return nil
    case .targetDuration(let target):
      delay = hasChanged ? target : target.half
    case .after(let period):
      delay = period > .zero ? period : (segmentDuration ?? shortest).half
    }
    return min(max(delay, shortest), MediaTime(value: 120, timescale: 1))
  }
}

extension LiveTiming {
  /// Returns true if the presentation has ended by the clock.
  ///
  /// - Parameter lastPeriod: The last period of the manifest, whose end counts if the manifest is never reloaded; nil not
  ///   to count it.
  package func isOver(at now: WallTime, lastPeriod: Period? = nil) -> Bool {
    if let availabilityEnd, availabilityEnd <= now { return true }
    guard case .never = reload, let availabilityStart, let lastPeriod, let length = lastPeriod.duration
    else { return false }
    return availabilityStart + lastPeriod.start + length <= now
  }
}
