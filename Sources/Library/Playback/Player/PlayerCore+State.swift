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

  /// An attached output for audio.
  struct SoundAttachment {
    let output: any AudioOutput
    /// The output time of the frame that was on show when it was attached.
    let start: MediaTime
  }

  struct State {
    var session: ItemSession?
    var machine = PlaybackMachine()
    var settings = Settings()
    var timebase = Timebase()
    /// The rate that `play()` uses.
    var wantedRate = 1.0
    /// A factor for the rate, above 1 while a live item catches up.
    var liveFactor = 1.0
    var catchUp = LiveCatchUp()
    /// The distance from the live edge that the user chose; nil for the manifest's.
    var liveTarget: Duration?
    var generation = 0
    /// True if the first frame of the generation is on show.
    var hasFrame = false
    var lastShownAt: Duration?
    var lastTime: MediaTime?
    var lastEnd: MediaTime?
    var lastSpan: StreamSpan?
    /// The end of the last frame, if the player then jumped by itself. Media between it and the next frame is
    /// reported as skipped.
    var skipsFrom: MediaTime?
    /// The end of the last frame by its own duration, even if it stays on show longer. Kept when the player
    /// jumps by itself.
    var ownEnd: MediaTime?
    /// True if the player has jumped since the last frame.
    var hasJumped = false
    /// The number of frames dropped since the last frame.
    var droppedCount = 0
    /// True if the last frame is damaged.
    var isDamaged = false
    /// The last iteration to show. Frames of later ones, which were read ahead, are dropped.
    var lastIteration = Int.max
    var onShow: SharedFrame?
    var hasEnded = false
    var hasAnnouncedEnd = false
    /// True once outputs were notified that the audio has ended.
    var hasAnnouncedSoundEnd = false
    var seek: PendingSeek?
    var stalledAt: Duration?
    /// The duration of the last completed stall.
    var lastStall: Duration = .zero
    /// The time at which the ring ran empty, at a rate of `.infinity`.
    var drySince: Duration?
    var outputs: [any FrameOutput] = []
    var audioOutputs: [SoundAttachment] = []
    var outputTimeline = OutputTimeline()
    var statistics = PlayerStatistics()
    var latenessIndex = 0
    var levelCheckedAt: Duration?
    /// True if no frame is shown until the player is released or paused, or gets another item.
    var isHeld = false
    var isClosed = false
    var volume: Float = 1
    var isMuted = false
  }
}

extension PlayerCore.State {
  /// The rate of the clock while playing. At `.infinity`, the clock follows the frames.
  var clockRate: Double { wantedRate == .infinity || isHeld ? 0 : wantedRate * liveFactor }

  /// True if an output receives audio.
  var isHeard: Bool { !isMuted && !audioOutputs.isEmpty }

  /// True if the item has ended, and playing restarts it.
  var startsOver: Bool { hasEnded && settings.actionAtItemEnd != .none }

  /// True if the first frame is decoded in advance, and no frame after it.
  var restsAtFirst: Bool {
    settings.preloadTarget.map { !$0.isDecoderWarm } ?? false && outputs.isEmpty
  }

  /// The start of the current iteration on the player's timeline.
  var shift: MediaTime { lastSpan?.shift ?? .zero }

  func itemTime(at now: Duration) -> MediaTime {
    if wantedRate == .infinity, let lastTime { return lastTime - shift }
    let time = timebase.time(at: now)
    // The clock does not advance past the loaded media.
    return (lastEnd.map { min(time, max($0, lastTime ?? $0)) } ?? time) - shift
  }

  /// Returns the position on the player's timeline for a requested time, limited to the item.
  func target(of time: MediaTime, duration: MediaTime?) -> MediaTime {
    var time = max(time, .zero)
    // Frames may come after the duration that the manifest states. After the last frame, a seek shows that
    // one.
    if let duration, duration > .zero { time = min(time, duration + MediaTime(value: 1, timescale: 1)) }
    return time + shift
  }

  /// Returns true if this session and generation are still current.
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
    audioOutputs.removeAll { $0.output === output }
    return audioOutputs.count < count
  }

  /// Begins a generation with nothing shown.
  mutating func begin(generation: Int, at time: MediaTime?) {
    self.generation = generation
    hasFrame = false
    hasEnded = false
    hasAnnouncedEnd = false
    hasAnnouncedSoundEnd = false
    lastShownAt = nil
    drySince = nil
    lastTime = nil
    lastEnd = nil
    skipsFrom = nil
    ownEnd = nil
    hasJumped = false
    droppedCount = 0
    isDamaged = false
    levelCheckedAt = nil
    timebase = Timebase(time: time ?? .zero)
    outputTimeline.breakOff()
  }

  /// - Parameter began: The time at which the clock should have started. It does not start later than the end
  ///   of the frame on show: the next frame is due then, and not late.
  mutating func follow(_ actions: [PlaybackMachine.Action], now: Duration, began: Duration? = nil) {
    for action in actions {
      switch action {
      case .startClock: timebase.setRate(clockRate, at: clockStart(since: began, now: now))
      case .stopClock: timebase.setRate(0, at: now)
      case .changed, .stalled, .resumed: break
      }
    }
    // A stall may have begun before it was reported.
    statistics.times.record(.status(machine.status), at: machine.isStalled ? stalledAt ?? now : now)
    // The stall was ended by enough media, a seek, or a failure.
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

  /// Records that the last frame stayed on show until now over media that is lost.
  mutating func recordFreeze(over loss: MediaLoss?, at now: Duration) {
    guard let loss, loss.reason != .dropped, wantedRate.isFinite, let ownEnd, !hasJumped,
      let due = timebase.clockTime(of: ownEnd)
    else { return }
    statistics.times.record(.freeze(since: due), at: now)
  }

  mutating func recordLateness(_ lateness: Duration) {
    if statistics.lateness.count < 8192 {
      statistics.lateness.append(lateness)
    } else {
      statistics.lateness[latenessIndex] = lateness
      latenessIndex = (latenessIndex + 1) % statistics.lateness.count
    }
  }
}
