internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// The end of an item, its failure, and its buffer level.
extension PlayerCore {
  func atEnd(
    _ session: ItemSession, hasFrame: Bool, isPlaying: Bool, job: DecodingJob, now: Duration
  ) -> TaskLoop.Next {
    if !hasFrame {
      let failure =
        session.fruitlessFailure
        ?? ReelError(.badMedia, "no frame in the media", at: session.item.source.name)
      // After a seek beyond the last frame, the frame on show stays.
      if session.pendingFailure == nil, state.read({ $0.onShow != nil }) {
        return endSeek(session, job: job)
      }
      return fail(session, failure, job: job)
    }
    guard isPlaying else { return .idle }
    extendEnd(session, job: job)
    let (timebase, end, isFast) = state.read { ($0.timebase, $0.lastEnd, $0.wantedRate == .infinity) }
    let failure = session.pendingFailure
    // Wait for audio that is longer than the video. After a failure, wait only for audio before the last
    // frame's end, because reading may have stopped.
    let awaitsAudio = { session.hasAudioLeft && (failure == nil || session.hasAudio(before: end ?? .zero)) }
    if isFast {
      guard !awaitsAudio() else {
        handOutAudio(session, until: nil, job: job)
        return awaitsAudio() ? .idle : .again
      }
    } else {
      handOutAudio(session, until: timebase.time(at: now), job: job)
      if let end, let due = timebase.clockTime(of: end), due > now {
        guard let sound = session.nextAudioTime, let first = timebase.clockTime(of: sound) else {
          return .at(due)
        }
        return .at(min(due, max(first, now)))
      }
      if awaitsAudio() {
        guard let sound = session.nextAudioTime, let due = timebase.clockTime(of: sound) else {
          return .idle
        }
        return .at(max(due, now))
      }
    }
    if let failure { return fail(session, failure, job: job) }
    if settings.actionAtItemEnd == .loop {
      // Looping was requested after the end had been read, so it restarts with a gap.
      let continues = change { state, out in
        state.isCurrent(session, job) && state.seek(to: .zero, at: now, &out) == nil
      }
      // A source that can't be sought ends here.
      if continues { return .again }
    }
    let isNews = change { state, _ in
      guard !state.hasAnnouncedEnd, state.isCurrent(session, job) else { return false }
      state.hasAnnouncedEnd = true
      state.hasEnded = true
      if let end { state.timebase.setTime(end, at: now) }
      return true
    }
    guard isNews else { return .idle }
    // Publish the buffer level at the end, which may have changed since the last check.
    checkLevel(of: session, always: true)
    change { state, out in
      guard state.isCurrent(session, job) else { return }
      if state.settings.actionAtItemEnd != .none {
        state.handle(.reachedEnd, at: now, &out)
      } else {
        state.timebase.setRate(0, at: now)
      }
      out.tell(.playedToEnd(time: (end ?? .zero) - state.shift), of: session.item)
    }
    return .idle
  }

  /// Keeps the last frame on show until the audio has ended.
  private func extendEnd(_ session: ItemSession, job: DecodingJob) {
    guard let sound = session.audioEnd else { return }
    change { state, _ in
      guard state.isCurrent(session, job), let end = state.lastEnd, sound > end else { return }
      state.lastEnd = sound
    }
  }

  func endSeek(_ session: ItemSession, job: DecodingJob) -> TaskLoop.Next {
    let now = clock.now
    change { state, out in
      guard state.isCurrent(session, job) else { return }
      state.hasFrame = true
      state.lastEnd = state.timebase.time(at: now)
      state.frameShown(at: now, &out)
    }
    checkLevel(of: session, always: true)
    return .again
  }

  func fail(_ session: ItemSession, _ error: ReelError, job: DecodingJob) -> TaskLoop.Next {
    let item = session.item
    let isCurrent = change { state, out in
      guard state.isCurrent(session, job) else { return false }
      out.answer(state.seek.take(), with: .failure(error))
      if case .failed = item.status.value { return true }
      item.status.set(.failed(error))
      state.handle(.failed, at: clock.now, &out)
      out.tell(.failed(error), of: item)
      return true
    }
    if isCurrent { session.makeFailureDue() }
    return .idle
  }

  // MARK: Levels

  static let levelInterval = Duration.milliseconds(50)
  /// At a rate of `.infinity`, playback stalls after this long without media, which is as long as a frame may
  /// stay on show at other rates (`FramePacer.maximumFreeze`).
  static let dryTolerance = Duration.milliseconds(250)
  /// Playback stalls if audio is late by more than this.
  static let audioTolerance = MediaTime(value: 1, timescale: 10)

  /// Publishes the buffer level and reports it to the machine. While playing, at most every `levelInterval`,
  /// unless `always` is true.
  func checkLevel(of session: ItemSession, always: Bool = false) {
    let now = clock.now
    let (isDue, isStalled, isPlaying, rate, time, lacksFrames) = change { state, _ in
      let isPlaying = state.machine.status == .playing
      let isDue = always || !isPlaying || state.levelCheckedAt.map { now - $0 >= Self.levelInterval } ?? true
      if isDue { state.levelCheckedAt = now }
      let time = state.timebase.time(at: now)
      let shown = state.lastTime.map { time - $0 > MediaTime(value: 1, timescale: 2) } ?? state.hasFrame
      return (isDue, state.machine.isAfterStall, isPlaying, state.wantedRate, time, isPlaying && shown)
    }
    guard isDue else { return }
    // While only audio plays, the position follows the clock.
    if lacksFrames { session.change { $0.setPosition(time, &$1) } }
    var keepsUp = session.publishLevel(isStalled: isStalled, rate: rate, at: time)
    // With less audio, playback would stall again at once, regardless of the level.
    if isStalled, session.lacksAudio(at: time - Self.audioTolerance) { keepsUp = false }
    // Playback does not begin while the audio decoder is behind.
    if !isPlaying, state.read({ $0.isHeard }), session.isAudioDecoderBehind(time) { keepsUp = false }
    change { state, out in
      guard state.session === session, state.hasFrame else { return }
      state.handle(.buffer(isLikelyToKeepUp: keepsUp), at: now, &out)
    }
    followLive(session, now: now)
  }

  /// Keeps a live item at its distance from the live edge.
  func followLive(_ session: ItemSession, now: Duration) {
    let (time, end, hasFrame, isPlaying, rate, isStalled) = change { state, _ in
      (
        state.timebase.time(at: now), state.lastEnd, state.hasFrame, state.machine.status == .playing,
        state.wantedRate, state.machine.isStalled
      )
    }
    guard hasFrame, let distances = session.liveDistances(from: time) else { return }
    session.item.liveLatency.set(distances.latency)
    guard isPlaying || isStalled, rate.isFinite else { return }
    let action = change { state, _ in
      state.catchUp.action(
        latency: distances.latency, target: state.liveTarget ?? distances.target,
        oldestLatency: distances.oldest > distances.target ? distances.oldest : nil,
        segmentDuration: distances.segmentDuration, userRate: rate, isStalled: isStalled)
    }
    switch action {
    case .normal: setLiveFactor(1, now: now)
    case .rate(let factor): setLiveFactor(factor, now: now)
    case .jump(let latency):
      let wanted = distances.edge - MediaTime(seconds: latency / .seconds(1))
      guard let to = session.livePlace(near: wanted, after: max(time, end ?? time)) else { return }
      setLiveFactor(1, now: now)
      change { state, out in
        state.liveTarget = nil
        if state.session === session { _ = state.seek(to: to, at: now, &out) }
        out.tell(.jumpedToLive(from: time, to: to), of: session.item)
      }
    }
  }

  func setLiveFactor(_ factor: Double, now: Duration) {
    change { state, _ in
      guard state.liveFactor != factor else { return }
      state.liveFactor = factor
      if state.timebase.rate > 0 { state.timebase.setRate(state.clockRate, at: now) }
    }
  }
}
