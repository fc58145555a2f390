/// Where the time of one item has gone, by the player's clock: every moment since loading began belongs to one phase, so
/// the phases together are the time that has passed.
///
/// A pure value: it is told what happens and when, and asks no clock.
public struct PlaybackTimes: Sendable, Hashable {
  public enum Phase: String, Sendable, Hashable, CaseIterable {
    /// From the beginning of loading until the first frame is shown, or until now where none was.
    case startup
    /// The first frame stands until there is enough media to play.
    case buffering
    case playing
    /// What was loaded has run out.
    case stalled
    /// From a seek, a jump towards the live edge included, until it plays on.
    case seeking
    /// Paused, at the end, or failed.
    case paused

    fileprivate var index: Int {
      switch self {
      case .startup: 0
      case .buffering: 1
      case .playing: 2
      case .stalled: 3
      case .seeking: 4
      case .paused: 5
      }
    }
  }

  /// What happens.
  enum Event: Sendable, Equatable {
    /// The first frame of the item is on show.
    case firstFrame
    /// Another frame is on show.
    case frame
    case status(TimeControlStatus)
  }

  /// The phase that goes on.
  public private(set) var phase = Phase.startup
  /// From the beginning of loading to the second frame of moving pictures: the first one shown while playing that follows
  /// another. Nil before.
  public private(set) var timeToMotion: Duration?

  private let start: Duration
  /// When the present phase began.
  private var since: Duration
  /// In the order of `Phase.allCases`.
  private var finished = [Duration](repeating: .zero, count: Phase.allCases.count)
  private var status = TimeControlStatus.paused
  private var hasPlayed = false

  /// - Parameter start: When loading began, by the clock that all times are of.
  init(start: Duration = .zero) {
    self.start = start
    since = start
  }

  /// How long a phase was in all.
  public subscript(phase: Phase) -> Duration { finished[phase.index] }

  /// All phases together: the time from the beginning of loading.
  public var total: Duration { finished.reduce(.zero, +) }

  /// The share of the time after playback began that the viewer waited: stalled and seeking, of that and playing. Nil
  /// before anything was played.
  public var rebufferingRatio: Double? {
    let waited = self[.stalled] + self[.seeking]
    let all = waited + self[.playing]
    return all > .zero ? waited / all : nil
  }

  /// - Parameter time: No earlier than that of the event before; one that is counts as that.
  mutating func note(_ event: Event, at time: Duration) {
    let time = max(time, since)
    switch event {
    case .firstFrame:
      if phase == .startup { enter(phase(of: status), at: time) }
    case .frame:
      if timeToMotion == nil, phase != .startup, status == .playing { timeToMotion = time - start }
    case .status(let status):
      self.status = status
      // A phase that goes on keeps its beginning: the next one may have begun before it is told.
      if phase != .startup, phase(of: status) != phase { enter(phase(of: status), at: time) }
    }
    if phase == .playing { hasPlayed = true }
  }

  /// The account at `time`, the present phase with it.
  func closed(at time: Duration) -> PlaybackTimes {
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
    case .waitingToPlay(.toMinimizeStalls): .stalled
    case .waitingToPlay: hasPlayed ? .seeking : .buffering
    }
  }
}
