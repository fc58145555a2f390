/// The use of the time since the beginning of loading an item, by the player's clock. Every moment belongs to
/// exactly one phase, so the phases add up to the elapsed time.
///
/// A pure value that reads no clock: each event comes with its time.
package struct PlaybackTimes: Sendable, Hashable {
  package enum Phase: String, Sendable, Hashable, CaseIterable {
    /// From the beginning of loading until the first frame is shown, or until now if none was.
    case startup
    /// The first frame is on show, and there is not enough media to play yet.
    case buffering
    /// Frames are shown at the player's rate.
    case playing
    /// The last frame stays on show until the next one is due, because the media between them is missing or
    /// damaged.
    case frozen
    /// The loaded media has run out.
    case stalled
    /// From a seek, including a jump towards the live edge, until playback resumes.
    case seeking
    /// Paused, at the end, or failed.
    case paused

    fileprivate var index: Int {
      switch self {
      case .startup: 0
      case .buffering: 1
      case .playing: 2
      case .frozen: 3
      case .stalled: 4
      case .seeking: 5
      case .paused: 6
      }
    }
  }

  /// An event that may change the phase.
  package enum Event: Sendable, Equatable {
    /// The first frame of the item was shown.
    case firstFrame
    case frame
    /// The last frame stayed on show because of missing media until now.
    case freeze(since: Duration)
    case status(TimeControlStatus)
  }

  package private(set) var phase = Phase.startup
  /// The time from the beginning of loading to the second frame, which is the first one shown while playing
  /// that follows another. Nil before it.
  package private(set) var timeToSecondFrame: Duration?

  private let start: Duration
  /// The time at which the current phase began.
  private var since: Duration
  /// The durations of the phases, in the order of `Phase.allCases`.
  private var finished = [Duration](repeating: .zero, count: Phase.allCases.count)
  private var status = TimeControlStatus.paused
  private var hasPlayed = false

  /// - Parameter start: The time at which loading began, by the same clock as all event times.
  package init(start: Duration = .zero) {
    self.start = start
    since = start
  }

  package subscript(phase: Phase) -> Duration { finished[phase.index] }

  /// The sum of all phases: the time since the beginning of loading.
  package var total: Duration { finished.reduce(.zero, +) }

  /// The time spent stalled and seeking as a share of the time spent stalled, seeking and playing. Nil before
  /// anything was played.
  package var rebufferingRatio: Double? {
    let waited = self[.stalled] + self[.seeking]
    let all = waited + self[.playing]
    return all > .zero ? waited / all : nil
  }

  /// - Parameter time: The time of the event. A time before the last phase change counts as the time of that
  ///   change.
  package mutating func record(_ event: Event, at time: Duration) {
    let time = max(time, since)
    switch event {
    case .firstFrame:
      if phase == .startup { enter(phase(of: status), at: time) }
    case .frame:
      if timeToSecondFrame == nil, phase != .startup, status == .playing { timeToSecondFrame = time - start }
    case .freeze(let start):
      guard phase == .playing else { break }
      enter(.frozen, at: min(max(start, since), time))
      enter(.playing, at: time)
    case .status(let status):
      self.status = status
      // A repeated status does not restart its phase. The next phase may be reported late, with a start in
      // the past.
      if phase != .startup, phase(of: status) != phase { enter(phase(of: status), at: time) }
    }
    if phase == .playing { hasPlayed = true }
  }

  /// Returns a copy that includes the current phase up to `time`.
  package func closed(at time: Duration) -> PlaybackTimes {
    var copy = self
    copy.enter(phase, at: max(time, since))
    return copy
  }

  // MARK: - Private

  private mutating func enter(_ next: Phase, at time: Duration) {
    finished[phase.index] += time - since
    phase = next
    since = time
  }

  private func phase(of status: TimeControlStatus) -> Phase {
    switch status {
    case .paused: .paused
    case .playing: .playing
    case .waitingToPlayAtSpecifiedRate(.toMinimizeStalls): .stalled
    case .waitingToPlayAtSpecifiedRate: hasPlayed ? .seeking : .buffering
    }
  }
}
