package import ReelCore

extension DASHLiveSimulation {
  /// How a client learns of segments.
  package enum Addressing: Sendable, Hashable {
    /// By number and @duration.
    case number
    /// From a SegmentTimeline that grows, by time.
    case timeline
  }

  /// What each pass of the loop is.
  package enum Periods: Sendable, Hashable {
    /// A Period of its own: new ones appear, and old ones go.
    case onePerPass
    /// A part of the one Period, with the media times of its segments moved on.
    case single
  }

  /// How a client is told the time (UTCTiming, ISO/IEC 23009-1 §5.8.5.7).
  package enum TimeScheme: String, Sendable, Hashable {
    case direct = "urn:mpeg:dash:utc:direct:2014"
    case httpHead = "urn:mpeg:dash:utc:http-head:2014"
    case httpISO = "urn:mpeg:dash:utc:http-iso:2014"
  }

  package struct Options: Sendable {
    package var addressing: Addressing
    package var periods: Periods
    /// Nil for an MPD that need not be read again: one Period, by number.
    package var minimumUpdatePeriod: MediaTime?
    /// Nil for one that keeps everything.
    package var timeShiftBufferDepth: MediaTime?
    package var suggestedPresentationDelay: MediaTime?
    /// How much earlier than its end a segment is there.
    package var availabilityTimeOffset: MediaTime
    /// In the order of preference.
    package var timeSchemes: [TimeScheme]
    /// How far the server's clock is ahead of the one that the simulation is given.
    package var serverClockOffset: MediaTime
    /// After so many passes the presentation ends; nil for never.
    package var passCount: Int?
    /// The status for a segment that has left the time shift buffer.
    package var goneStatus: Int
    package var disturbances: LiveDisturbances

    package init(
      addressing: Addressing = .number, periods: Periods = .onePerPass,
      minimumUpdatePeriod: MediaTime? = .zero,
      timeShiftBufferDepth: MediaTime? = MediaTime(value: 10, timescale: 1),
      suggestedPresentationDelay: MediaTime? = nil, availabilityTimeOffset: MediaTime = .zero,
      timeSchemes: [TimeScheme] = [], serverClockOffset: MediaTime = .zero, passCount: Int? = nil,
      goneStatus: Int = 404, disturbances: LiveDisturbances = LiveDisturbances()
    ) {
      self.addressing = addressing
      self.periods = periods
      self.minimumUpdatePeriod = minimumUpdatePeriod
      self.timeShiftBufferDepth = timeShiftBufferDepth
      self.suggestedPresentationDelay = suggestedPresentationDelay
      self.availabilityTimeOffset = availabilityTimeOffset
      self.timeSchemes = timeSchemes
      self.serverClockOffset = serverClockOffset
      self.passCount = passCount
      self.goneStatus = goneStatus
      self.disturbances = disturbances
    }
  }
}
