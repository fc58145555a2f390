internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelReading
internal import ReelSources

/// The program's commands to a player. Each takes effect at once.
extension PlayerState {
  /// - Parameter asked: The time at which playback was requested. The frame on show counts as shown since then.
  mutating func play(asked: Duration? = nil, at now: Duration, _ out: inout Effects) {
    out.wake(.presenter)
    // An item that can't be sought stays at its end.
    if startsOver { return _ = seek(to: .zero, plays: true, at: now, &out) }
    setWantsToPlay(true, asked: asked, at: now, &out)
  }

  mutating func pause(at now: Duration, _ out: inout Effects) {
    isHeld = false
    setWantsToPlay(false, at: now, &out)
  }

  private mutating func setWantsToPlay(
    _ wants: Bool, asked: Duration? = nil, at now: Duration, _ out: inout Effects
  ) {
    let before = status
    wantsToPlay = wants
    follow(from: before, asked: asked, at: now)
    publish(&out)
  }

  mutating func setRate(_ rate: Double, at now: Duration, _ out: inout Effects) {
    wantedRate = rate == .infinity ? rate : min(max(rate, 0.25), 8)
    followRate(at: now)
    play(at: now, &out)
  }

  /// Keeps the frame on show, even if other frames are due, until the player is released or paused.
  mutating func hold(at now: Duration) {
    isHeld = true
    item.clock.setRate(0, at: now)
  }

  mutating func release(at now: Duration, _ out: inout Effects) {
    guard isHeld else { return }
    isHeld = false
    followRate(at: now)
    out.wake(.presenter)
  }

  /// Lets a running clock follow a changed rate.
  private mutating func followRate(at now: Duration) {
    if status == .playing, !item.playback.hasEnded { item.clock.setRate(clockRate, at: now) }
  }

  mutating func update(_ body: (inout Settings) -> Void, at now: Duration, _ out: inout Effects) {
    let before = status
    body(&settings)
    follow(from: before, at: now)
    publish(&out)
    // In the same change, so that no frame of a later iteration is shown once the item no longer loops.
    if item.session != nil { item.setLoops(settings.actionAtItemEnd == .loop, &out) }
    out.wake(.presenter)
  }

  mutating func setTarget(_ target: PreloadTarget?, _ out: inout Effects) {
    settings.preloadTarget = target
    if item.session != nil { item.setTarget(target, &out) }
    out.wake(.presenter)
  }

  mutating func setMuted(_ muted: Bool, _ out: inout Effects) {
    isMuted = muted
    if item.session != nil { item.setWantsAudio(!muted, &out) }
    out.wake(.presenter)
  }

  /// Starts a seek, and returns the error if it can't. A seek retries a failed item if the failure is temporary.
  ///
  /// - Parameters:
  ///   - wait: The seek that waits for the frame; nil if the player seeks by itself.
  ///   - plays: Playback is requested with the seek: the item may end before it could be requested afterwards.
  mutating func seek(
    to time: MediaTime, tolerance: MediaTime = .zero, for wait: PendingSeek? = nil, plays: Bool = false,
    at now: Duration, _ out: inout Effects
  ) -> ReelError? {
    guard let played = item.playerItem else { return noItem }
    if wait != nil, settings.requiresLinearPlayback {
      return ReelError(.usage, "seeking is refused: playback is linear", at: played.source.name)
    }
    if let failure = item.dueFailure, !failure.isTemporary { return failure }
    guard item.streams.canSeek else {
      return ReelError(.unsupported, "this source is not seekable", at: played.source.name)
    }
    let before = status
    let target = item.seek(
      to: place(of: time, duration: played.duration.value), tolerance: tolerance, &out)
    // After a seek back within the window, playback stays at that distance.
    if wait != nil { item.keepLiveDistance(of: target) }
    if item.playback.hasEnded || item.playback.hasFailed { out.tell(.restarted(played)) }
    if case .failed = played.status.value { played.observed.status.set(.unknown) }
    let (left, stalledAt) = (item.playback.seek, item.playback.stalledAt)
    item.playback = .opening(wait)
    follow(from: before, at: now)
    if let stalledAt {
      out.tell(.resumed(time: itemTime(at: now), after: now - stalledAt), of: played)
    }
    out.answer(left, with: .success(false))
    let last = item.onShow
    item.begin(at: target)
    outputTimeline.breakOff()
    if var wait {
      wait.time = target
      item.playback = .opening(wait)
    } else {
      // Media skipped by the player itself is reported as skipped.
      item.onShow.skipsFrom = last.end ?? last.skipsFrom
      item.onShow.ownEnd = last.ownEnd
      item.onShow.hasJumped = last.ownEnd != nil
    }
    if plays { setWantsToPlay(true, at: now, &out) } else { publish(&out) }
    out.wake(.presenter)
    return nil
  }

  /// The error of a call that needs an item, without one.
  var noItem: ReelError { refusal ?? ReelError(.usage, "the player has no item") }

  /// Returns the position on the player's timeline for a requested time, limited to the item.
  private func place(of time: MediaTime, duration: MediaTime?) -> MediaTime {
    var time = max(time, .zero)
    // Frames may come after the duration that the manifest states. After the last frame, a seek shows that
    // one.
    if let duration, duration > .zero { time = min(time, duration + MediaTime(value: 1, timescale: 1)) }
    return time + item.onShow.shift
  }

  /// Resources that a player released together with its item.
  struct Left {
    var session: ItemSession?
    /// Those of the readers' jobs.
    var scopes: [LoadScope] = []
    var seek: PendingSeek?
    var outputs: [any FrameOutput] = []
    var audioOutputs: [SoundAttachment] = []
    /// The end of the frames and audio that outputs have received, in output time.
    var outputEnd = MediaTime.zero
  }

  /// Begins with another item, or none, and returns what is left; nil if the player is closed.
  ///
  /// - Parameter detaches: True to pause, and to let go all outputs.
  mutating func replace(
    with session: ItemSession?, start: MediaTime?, detaches: Bool, at now: Duration, _ out: inout Effects
  ) -> Left? {
    guard !isClosed else { return nil }
    var left = Left(session: item.session, seek: item.playback.seek)
    for kind in TrackKind.allCases {
      if let scope = item.readingJobs[kind]?.scope { left.scopes.append(scope) }
    }
    item.videoJob.end()
    item.audioJob.end()
    item.audioWatch?.cancel()
    isHeld = false
    if detaches {
      (left.outputs, left.audioOutputs, left.outputEnd) = (outputs, audioOutputs, outputTimeline.end)
      outputs = []
      audioOutputs = []
      wantsToPlay = false
    }
    var other = ItemState()
    if let session {
      other = ItemState(
        session, start: start, target: settings.preloadTarget, wantsAudio: !isMuted,
        loops: settings.actionAtItemEnd == .loop)
      other.prefersThroughput = isFast && settings.preloadTarget == nil
      if settings.playsWhenReady { wantsToPlay = true }
    } else {
      other.statistics.times = PlaybackTimes(start: now)
    }
    swap(&item, &other)
    out.free(other)
    outputTimeline.breakOff()
    item.statistics.times.record(.status(status), at: now)
    return left
  }

  // MARK: Outputs

  /// Attaches an output, and returns the frame on show. Does nothing if it is attached.
  mutating func attach(_ output: any FrameOutput) -> VideoFrame? {
    guard !outputs.contains(where: { $0 === output }) else { return nil }
    outputs.append(output)
    return item.onShow.frame
  }

  mutating func attach(_ output: any AudioOutput) {
    guard !audioOutputs.contains(where: { $0.output === output }) else { return }
    audioOutputs.append(
      SoundAttachment(output: output, start: item.onShow.frame?.outputTime ?? .zero))
  }

  /// Removes an output; false if it was not attached.
  mutating func remove(_ output: any FrameOutput) -> Bool {
    let count = outputs.count
    outputs.removeAll { $0 === output }
    return outputs.count < count
  }

  /// Removes an output; nil if it was not attached.
  mutating func remove(_ output: any AudioOutput) -> SoundAttachment? {
    guard let index = audioOutputs.firstIndex(where: { $0.output === output }) else { return nil }
    return audioOutputs.remove(at: index)
  }
}
