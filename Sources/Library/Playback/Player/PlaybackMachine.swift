/// Decides when a player's clock runs: events in, actions out. A pure value.
///
/// - Playback begins when the first frame is on show and the buffer is likely to keep up.
/// - It stalls when there is no frame and nothing to decode, and resumes when the buffer is likely to keep up
///   again, by the larger threshold.
/// - A player that does not wait to minimize stalls begins with the first frame, and pauses instead of
///   stalling.
struct PlaybackMachine: Sendable {
  enum Event: Sendable, Equatable {
    case play
    case pause
    case itemReplaced(hasItem: Bool)
    /// The first frame of the item, or of a seek, was shown.
    case frameShown
    case seekBegan
    case buffer(isLikelyToKeepUp: Bool)
    /// A frame is due, but there is none and nothing to decode.
    case ranDry
    case reachedEnd
    case failed
  }

  enum Action: Sendable, Equatable {
    case startClock
    case stopClock
    case changed(TimeControlStatus)
    case stalled
    case resumed
  }

  var waitsToMinimizeStalls = true
  private(set) var isPlayWanted = false
  private(set) var isStalled = false
  private var hasItem = false
  private var hasFrame = false
  private var hasStarted = false
  private var keepsUp = false
  private var hasFailed = false

  var status: TimeControlStatus {
    guard isPlayWanted, !hasFailed else { return .paused }
    guard hasItem else { return .waitingToPlay(.noItemToPlay) }
    if isStalled { return .waitingToPlay(.toMinimizeStalls) }
    guard hasFrame, hasStarted else { return .waitingToPlay(.evaluatingBufferingRate) }
    return .playing
  }

  /// True if the threshold for resuming after a stall applies.
  var isAfterStall: Bool { isStalled }

  mutating func handle(_ event: Event) -> [Action] {
    let before = status
    var actions: [Action] = []
    switch event {
    case .play:
      isPlayWanted = true
    case .pause:
      isPlayWanted = false
    case .itemReplaced(let hasItem):
      self.hasItem = hasItem
      hasFrame = false
      hasStarted = false
      isStalled = false
      keepsUp = false
      hasFailed = false
    case .frameShown:
      hasFrame = true
    case .seekBegan:
      hasFrame = false
      hasStarted = false
      keepsUp = false
      hasFailed = false
      if isStalled {
        isStalled = false
        actions.append(.resumed)
      }
    case .buffer(let isLikelyToKeepUp):
      keepsUp = isLikelyToKeepUp
      if isStalled, keepsUp {
        isStalled = false
        actions.append(.resumed)
      }
    case .ranDry:
      if before == .playing {
        actions.append(.stalled)
        if waitsToMinimizeStalls {
          isStalled = true
          keepsUp = false
        } else {
          isPlayWanted = false
        }
      }
    case .reachedEnd:
      isPlayWanted = false
      isStalled = false
    case .failed:
      hasFailed = true
      isStalled = false
    }
    if hasFrame, keepsUp || !waitsToMinimizeStalls { hasStarted = true }
    let after = status
    if before == .playing, after != .playing { actions.append(.stopClock) }
    if before != .playing, after == .playing { actions.append(.startClock) }
    if before != after { actions.append(.changed(after)) }
    return actions
  }
}
