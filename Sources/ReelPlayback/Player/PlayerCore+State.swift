internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

extension PlayerCore {
  struct PendingSeek {
    let generation: Int
    let time: MediaTime
    let began: Duration
    let continuation: CheckedContinuation<Bool, any Error>
  }

  struct State {
    var session: ItemSession?
    var machine = PlaybackMachine()
    var settings = Settings()
    var timebase = Timebase()
    /// The rate that `play()` uses.
    var wantedRate = 1.0
    /// What the clock runs by: the rate, a little more where a live item catches up.
    var liveFactor = 1.0
    var catchUp = LiveCatchUp()
    /// Where the user wants a live item to be, behind the edge; nil for the manifest's delay.
    var liveTarget: Duration?
    var generation = 0
    /// The first frame of the generation has been shown.
    var hasFrame = false
    var lastShownAt: Duration?
    var lastTime: MediaTime?
    var lastEnd: MediaTime?
    var lastSpan: StreamSpan?
    /// The end of the last frame, if the player then jumped by itself. Media between it and the next frame is
    /// skipped.
    var skipsFrom: MediaTime?
    /// The last time through the item: frames of later ones, which were read ahead, are not shown.
    var lastIteration = Int.max
    var onShow: SharedFrame?
    var hasEnded = false
    var hasAnnouncedEnd = false
    /// True once outputs were told that the audio has ended.
    var hasToldSoundEnd = false
    var seek: PendingSeek?
    var stalledAt: Duration?
    /// How long the last stall was that is over.
    var lastStall: Duration = .zero
    /// Since when there has been nothing to show, as fast as it goes.
    var drySince: Duration?
    var outputs: [any FrameOutput] = []
    var audioOutputs: [any AudioOutput] = []
    var statistics = PlayerStatistics()
    var latenessIndex = 0
    var levelCheckedAt: Duration?
    /// Nothing more is shown before it is released, paused or given another item.
    var isHeld = false
    var isClosed = false
    var volume: Float = 1
    var isMuted = false
  }
}

extension PlayerCore.State {
  /// What the clock runs by while playing; at `.infinity` it follows the frames.
  var clockRate: Double { wantedRate == .infinity || isHeld ? 0 : wantedRate * liveFactor }

  /// True if an output receives audio.
  var isHeard: Bool { !isMuted && !audioOutputs.isEmpty }

  /// The first frame is decoded ahead of its time, and nothing behind it.
  var restsAtFirst: Bool {
    settings.preloadTarget.map { !$0.isDecoderWarm } ?? false && outputs.isEmpty
  }

  /// Where the present time through the item begins on the player's timeline.
  var shift: MediaTime { lastSpan?.shift ?? .zero }

  func itemTime(at now: Duration) -> MediaTime {
    if wantedRate == .infinity, let lastTime { return lastTime - shift }
    let time = timebase.time(at: now)
    // The clock does not run beyond what is there.
    return (lastEnd.map { min(time, max($0, lastTime ?? $0)) } ?? time) - shift
  }

  /// A time that is asked for on the player's timeline, within the item.
  func target(of time: MediaTime, duration: MediaTime?) -> MediaTime {
    var time = max(time, .zero)
    // Frames may lie behind the duration that a manifest states: the last one is shown for what lies behind it.
    if let duration, duration > .zero { time = min(time, duration + MediaTime(value: 1, timescale: 1)) }
    return time + shift
  }

  /// True where this is still what is played, from where it was sought last.
  func isCurrent(_ session: ItemSession, _ generation: Int) -> Bool {
    self.session === session && self.generation == generation
  }

  /// Removes an output; false if it was not attached.
  mutating func remove(_ output: any FrameOutput) -> Bool {
    let count = outputs.count
    outputs.removeAll { $0 === output }
    return outputs.count < count
  }

  /// Removes an output; false if it was not attached.
  mutating func remove(_ output: any AudioOutput) -> Bool {
    let count = audioOutputs.count
    audioOutputs.removeAll { $0 === output }
    return audioOutputs.count < count
  }

  /// Begins a generation: nothing of it has been shown.
  mutating func begin(generation: Int, at time: MediaTime?) {
    self.generation = generation
    hasFrame = false
    hasEnded = false
    hasAnnouncedEnd = false
    hasToldSoundEnd = false
    lastShownAt = nil
    drySince = nil
    lastTime = nil
    lastEnd = nil
    skipsFrom = nil
    levelCheckedAt = nil
    timebase = Timebase(time: time ?? .zero)
  }

  /// - Parameter began: When the clock should have begun to run. It does not begin behind the end of the frame on show:
  ///   the next one is due then, and none is late.
  mutating func follow(_ actions: [PlaybackMachine.Action], now: Duration, began: Duration? = nil) {
    for action in actions {
      switch action {
      case .startClock: timebase.setRate(clockRate, at: clockStart(since: began, now: now))
      case .stopClock: timebase.setRate(0, at: now)
      case .changed, .stalled, .resumed: break
      }
    }
    // A stall may have begun before it was reported.
    statistics.times.note(.status(machine.status), at: machine.isStalled ? stalledAt ?? now : now)
    // Whatever has ended it: enough media, a seek, a failure.
    if let began = stalledAt, !machine.isStalled {
      stalledAt = nil
      lastStall = now - began
    }
  }

  private func clockStart(since began: Duration?, now: Duration) -> Duration {
    guard let began, let lastShownAt, let lastEnd, clockRate > 0 else { return now }
    let left = Duration.seconds(max(0, (lastEnd - timebase.time(at: now)).seconds) / clockRate)
    return min(now, max(began, lastShownAt, now - left))
  }

  mutating func noteLateness(_ lateness: Duration) {
    if statistics.lateness.count < 8192 {
      statistics.lateness.append(lateness)
    } else {
      statistics.lateness[latenessIndex] = lateness
      latenessIndex = (latenessIndex + 1) % statistics.lateness.count
    }
  }
}
