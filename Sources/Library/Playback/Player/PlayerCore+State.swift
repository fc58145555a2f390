internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

extension PlayerCore {
  struct PendingSeek {
    /// The position, on the player's timeline once the seek has begun.
    var time: MediaTime
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
    /// The job of the item's video decoder since the last seek. What belongs to another one is not shown.
    var job: DecodingJob?
    /// True if the first frame of the job is on show.
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
    /// What observers have not been told yet.
    var news: [PlayerNews] = []
  }

  /// What a player has let go together with its item.
  struct Left {
    var session: ItemSession?
    var seek: PendingSeek?
    var outputs: [any FrameOutput] = []
    var audioOutputs: [SoundAttachment] = []
    /// The end of the frames and audio that outputs have received, in output time.
    var outputEnd = MediaTime.zero
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

  /// Returns true if this session and job are still current.
  func isCurrent(_ session: ItemSession, _ job: DecodingJob) -> Bool {
    self.session === session && self.job === job
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

  /// Begins a job. None of its frames is on show yet.
  mutating func begin(_ job: DecodingJob?, at time: MediaTime?) {
    self.job = job
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

  /// Starts or stops the clock as an event requires, and tells observers.
  ///
  /// - Parameter began: The time at which the clock should have started, or the stall has begun.
  mutating func handle(
    _ event: PlaybackMachine.Event, at now: Duration, began: Duration? = nil, _ out: inout Effects
  ) {
    let actions = machine.handle(event)
    if actions.contains(.stalled) {
      stalledAt = began ?? now
      drySince = nil
      statistics.stallCount += 1
    }
    follow(actions, now: now, began: began)
    let item = session?.item
    for action in actions {
      switch action {
      case .stalled:
        out.tell(.stalled(time: itemTime(at: now)), of: item)
        item?.updateAccess(rung: item?.rung.value) { $0.stallCount += 1 }
      case .resumed: out.tell(.resumed(time: itemTime(at: now), after: lastStall), of: item)
      case .startClock, .stopClock, .changed: break
      }
    }
    if case .buffer = event, actions.isEmpty { return }
    publish(&out)
  }

  /// Tells observers the values of the properties, and the session how the item is played.
  func publish(_ out: inout Effects) {
    out.tell(
      .status(machine.status, rate: machine.isPlayWanted ? wantedRate : 0, item: session?.item))
    session?.setRate(wantedRate, status: machine.status, &out)
  }

  /// Continues after the first frame of a job: completes the seek that waited for it, and resumes playback.
  mutating func frameShown(at now: Duration, _ out: inout Effects) {
    if let seek = seek.take() {
      out.tell(.seekDone(time: itemTime(at: now), after: now - seek.began), of: session?.item)
      out.answer(seek, with: .success(true))
    }
    handle(.frameShown, at: now, &out)
  }

  /// Lets a running clock follow a changed rate.
  mutating func followRate(at now: Duration) {
    if machine.status == .playing, !hasEnded { timebase.setRate(clockRate, at: now) }
  }

  /// Makes another session the current one, and returns what is left; nil if the player is closed.
  mutating func replace(
    _ session: ItemSession?, start: MediaTime?, detaches: Bool, at now: Duration, _ out: inout Effects
  ) -> PlayerCore.Left? {
    guard !isClosed else { return nil }
    var left = PlayerCore.Left(session: self.session, seek: seek.take())
    self.session = session
    isHeld = false
    var actions: [PlaybackMachine.Action] = []
    if detaches {
      (left.outputs, left.audioOutputs, left.outputEnd) = (outputs, audioOutputs, outputTimeline.end)
      outputs = []
      audioOutputs = []
      actions += machine.handle(.pause)
    }
    actions += machine.handle(.itemReplaced(hasItem: session != nil))
    if session != nil, settings.playsWhenReady { actions += machine.handle(.play) }
    begin(session?.videoJob, at: start)
    statistics = PlayerStatistics()
    statistics.times = PlaybackTimes(start: session?.startedAt ?? now)
    latenessIndex = 0
    out.free(onShow.take())
    lastSpan = nil
    liveFactor = 1
    liveTarget = nil
    catchUp = LiveCatchUp()
    stalledAt = nil
    follow(actions, now: now)
    return left
  }

  /// Starts a seek, and returns the error if it can't. A seek retries a failed item if the failure is temporary.
  ///
  /// - Parameters:
  ///   - wait: The seek that waits for the frame; nil if the player seeks by itself.
  ///   - plays: Playback is requested with the seek: the item may end before it could be requested afterwards.
  mutating func seek(
    to time: MediaTime, tolerance: MediaTime = .zero, for wait: PlayerCore.PendingSeek? = nil,
    plays: Bool = false, at now: Duration, _ out: inout Effects
  ) -> ReelError? {
    guard let session else { return ReelError(.usage, "there is no item to seek in") }
    let item = session.item
    if wait != nil, settings.isLinear {
      return ReelError(.usage, "seeking is refused: playback is linear", at: item.source.name)
    }
    if let failure = session.failure, !failure.isTemporary { return failure }
    guard session.streams.canSeek else {
      return ReelError(.unsupported, "this source is not seekable", at: item.source.name)
    }
    let (job, target) = session.seek(
      to: self.target(of: time, duration: item.duration.value), tolerance: tolerance,
      iteration: lastSpan?.loop.iteration ?? 0, &out)
    if wait != nil, let distances = session.liveDistances(from: target) {
      // After a seek back within the window, playback stays at that distance.
      liveTarget = max(distances.latency, distances.target)
    }
    out.answer(seek.take(), with: .success(false))
    seek = wait
    seek?.time = target
    if case .failed = item.status.value { item.status.set(.unknown) }
    handle(.seekBegan, at: now, &out)
    // Media skipped by the player itself is reported as skipped.
    let (skipsFrom, ownEnd) = wait == nil ? (lastEnd ?? self.skipsFrom, self.ownEnd) : (nil, nil)
    begin(job, at: target)
    self.skipsFrom = skipsFrom
    self.ownEnd = ownEnd
    hasJumped = ownEnd != nil
    if plays { handle(.play, at: now, &out) }
    out.wake(.presenter)
    return nil
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
