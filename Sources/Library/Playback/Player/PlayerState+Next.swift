internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelSources

/// The next step of a player's presenter.
enum Step {
  /// Shows the next frame, which was due then; nil if it has no due time.
  case show(DecodingJob, due: Duration?)
  /// Passes audio due by a time to outputs; nil for all that is decoded.
  case passSound(DecodingJob, until: MediaTime?)
  /// Asks again: the state has changed.
  case again
  case wait(until: Duration)
  /// Nothing, until it is woken.
  case rest
}

/// The next step of a player.
extension PlayerState {
  /// At a rate of `.infinity`, playback stalls after this long without media, which is as long as a frame may
  /// stay on show at other rates (`FramePacer.maximumFreeze`).
  private static let dryTolerance = Duration.milliseconds(250)
  /// Playback stalls if audio is late by more than this.
  static let audioTolerance = MediaTime(value: 1, timescale: 10)
  /// A hole between two frames that is skipped, if the second follows a gap in the timeline.
  private static let gapLimit = MediaTime(value: 3, timescale: 10)

  mutating func next(at now: Duration, _ out: inout Effects) -> Step {
    guard item.session != nil else { return .rest }
    updateLevelIfDue(at: now, &out)
    if case .frame(let time, _) = item.frames.head {
      outputTimeline.begin(firstFrame: time, shift: item.onShow.shift)
    }
    switch item.playback {
    case .opening: return open(at: now, &out)
    case .running where status == .playing && !isHeld: return run(at: now, &out)
    case .ended where status == .playing && settings.actionAtItemEnd == .loop:
      // Looping was requested after the end.
      return seek(to: .zero, at: now, &out) == nil ? .again : .rest
    case .ready, .running, .stalled, .ended, .failed: return .rest
    }
  }

  /// No frame of the position is on show yet: the first one is shown at once, whatever its time.
  private mutating func open(at now: Duration, _ out: inout Effects) -> Step {
    switch item.frames.head {
    case .frame(let time, _):
      return beginWithSound(before: time, at: now, &out) ? .again : .show(item.videoJob, due: nil)
    case .empty:
      if let failure = item.dueFailure {
        fail(failure, at: now, &out)
        return .rest
      }
      return beginWithSound(before: nil, at: now, &out) ? .again : .rest
    case .drained:
      // After a seek beyond the last frame, the frame on show stays.
      if item.failure == nil, item.onShow.frame != nil {
        item.onShow.end = item.clock.time(at: now)
        beginPlaying(at: now, &out)
        return .again
      }
      let empty = ReelError(.badMedia, "no frame in the media", at: item.playerItem?.source.name)
      fail(item.failure ?? item.fruitlessFailure ?? empty, at: now, &out)
      return .rest
    }
  }

  /// Begins without a frame if audio comes first. Returns false otherwise, or if the player should not play
  /// yet: the first frame is then shown at once.
  ///
  /// - Parameter frame: The time of the first frame; nil if it is unknown or if there is none.
  private mutating func beginWithSound(before frame: MediaTime?, at now: Duration, _ out: inout Effects)
    -> Bool
  {
    guard wantsToPlay else { return false }
    let start: MediaTime
    if let frame {
      start = item.beginning(firstFrame: frame)
      guard start < frame else { return false }
    } else {
      guard let sound = item.audio.nextTime, item.absentKinds(at: sound).contains(.video) else {
        return false
      }
      start = max(sound, item.playback.seek?.time ?? sound)
    }
    // Show the first frame when it is due, not at once.
    item.onShow.shownAt = now
    item.clock.setTime(start, at: now)
    item.playerItem?.observed.status.set(.readyToPlay)
    beginPlaying(at: now, &out)
    return true
  }

  /// The clock runs: frames and audio are due at their times.
  private mutating func run(at now: Duration, _ out: inout Effects) -> Step {
    switch item.frames.head {
    case .frame(let time, let following):
      let gap = skipGap(before: time, at: now, &out)
      return isFast
        ? showFast(time, at: now, &out) : pace(time, following, gap: gap, at: now, &out)
    case .empty: return runDry(at: now, &out)
    case .drained: return finish(at: now, &out)
    }
  }

  private mutating func pace(
    _ time: MediaTime, _ following: MediaTime?, gap: Duration?, at now: Duration, _ out: inout Effects
  ) -> Step {
    let position = item.clock.time(at: now)
    if let sound = dueSound(by: position) { return sound }
    if lacksAudio(at: position - Self.audioTolerance) {
      stall(since: now, at: now, &out)
      return .again
    }
    // A first frame that comes after audio is shown, even if it is late: files begin with it.
    let decision = FramePacer().decision(
      next: time, following: item.onShow.time == nil ? nil : following, timebase: item.clock, now: now,
      lastShownAt: item.onShow.shownAt)
    switch decision {
    case .show: return .show(item.videoJob, due: item.clock.clockTime(of: time))
    case .drop:
      drop(&out)
      return .again
    case .wait(let due):
      item.onShow.extend(to: position)
      return waitForSound(or: min(due, gap ?? due), at: now)
    }
  }

  /// At a rate of `.infinity`, a frame waits for the audio before it. Nothing else delays it, and it may be the last
  /// frame.
  private mutating func showFast(_ time: MediaTime, at now: Duration, _ out: inout Effects) -> Step {
    if let sound = dueSound(by: time) { return sound }
    if isHeard {
      if item.isAudioDecoderBehind(time) { return .rest }
      if item.isAudioLoaderBehind(time) { return waitDry(at: now, &out) }
    }
    return .show(item.videoJob, due: nil)
  }

  /// There is no frame.
  private mutating func runDry(at now: Duration, _ out: inout Effects) -> Step {
    let position = item.clock.time(at: now)
    if !isFast, let sound = dueSound(by: position) { return sound }
    // Only audio is played, while the last frame stays on show.
    if item.absentKinds(at: position).contains(.video) {
      if item.lacksAudio(at: position - Self.audioTolerance) {
        stall(since: now, at: now, &out)
        return .again
      }
      item.onShow.extend(to: position)
      return waitForSound(at: now)
    }
    let level = item.packets.level
    guard level.isConsumed, !level.isComplete else { return isFast ? .rest : waitForSound(at: now) }
    return waitDry(at: now, &out)
  }

  /// There is no frame, and nothing to decode. Playback stalls when the last frame's time is over. At a rate of
  /// `.infinity`, frames have no times: playback stalls after `dryTolerance` without a frame, counted from the
  /// beginning of the gap.
  private mutating func waitDry(at now: Duration, _ out: inout Effects) -> Step {
    var (since, due) = (now, item.onShow.end.flatMap { item.clock.clockTime(of: $0) } ?? now)
    if isFast {
      since = item.onShow.drySince ?? now
      item.onShow.drySince = since
      due = since + Self.dryTolerance
    }
    if due > now { return waitForSound(or: due, at: now) }
    stall(since: since, at: now, &out)
    return .again
  }

  /// The last frame is on show. Audio that is longer than the video is played to its end. Then the item fails, loops
  /// or ends.
  private mutating func finish(at now: Duration, _ out: inout Effects) -> Step {
    // The last frame stays on show until the audio has ended.
    item.onShow.extend(to: item.audio.end)
    let end = item.onShow.end
    // After a failure, wait only for audio before the last frame's end, because reading may have stopped.
    let awaitsAudio = item.hasAudioLeft && (item.failure == nil || item.hasAudio(before: end ?? .zero))
    if isFast {
      if awaitsAudio { return dueSound(by: nil) ?? .rest }
    } else {
      if let sound = dueSound(by: item.clock.time(at: now)) { return sound }
      if let end, let due = item.clock.clockTime(of: end), due > now { return waitForSound(or: due, at: now) }
      if awaitsAudio { return waitForSound(at: now) }
    }
    if let failure = item.failure {
      fail(failure, at: now, &out)
      return .rest
    }
    // Looping was requested after the end had been read, so it restarts with a gap. A source that can't be sought
    // ends here.
    if settings.actionAtItemEnd == .loop, seek(to: .zero, at: now, &out) == nil { return .again }
    if let end { item.clock.setTime(end, at: now) }
    // The buffer level may have changed since the last check.
    updateLevel(at: now, &out)
    guard case .running = item.playback else { return .again }
    self.end(at: now, &out)
    return .rest
  }

  // MARK: Sound

  /// Returns the step that passes audio due by `time`, or its end, to outputs; nil if there is none. Audio follows
  /// the clock of the frames: it waits with them in a stall, and follows them at other rates without being stretched.
  private func dueSound(by time: MediaTime?) -> Step? {
    let isDue = item.audio.nextTime.map { next in time.map { next <= $0 } ?? true } ?? isSoundEndDue
    return isDue ? .passSound(item.videoJob, until: time) : nil
  }

  /// True if outputs are to be notified that the audio has ended. Not for an item that loops, because more audio
  /// follows.
  var isSoundEndDue: Bool {
    item.audio.isDrained && !item.hasAnnouncedSoundEnd && settings.actionAtItemEnd != .loop
  }

  /// Waits for the next audio, or for a time that comes earlier.
  private func waitForSound(or deadline: Duration? = nil, at now: Duration) -> Step {
    let sound = item.audio.nextTime.flatMap { item.clock.clockTime(of: $0) }.map { max($0, now) }
    switch (sound, deadline) {
    case (let sound?, let deadline?): return .wait(until: min(sound, deadline))
    case (let time?, nil), (nil, let time?): return .wait(until: time)
    case (nil, nil): return .rest
    }
  }

  /// Returns true if audio due at `time` is late: because of its loader if it is a separate stream, or
  /// because of its decoder if an output uses it.
  private func lacksAudio(at time: MediaTime) -> Bool {
    if item.lacksAudio(at: time) { return true }
    // A player that does not wait would pause, although the machine may only be busy.
    return isHeard && settings.waitsToMinimizeStalls && item.isAudioWaitingForDecoder(at: time)
  }

  // MARK: Frames

  /// Drops a late frame.
  private mutating func drop(_ out: inout Effects) {
    guard let frame = item.takeFrame(&out) else { return }
    out.free(frame)
    item.statistics.droppedFrameCount += 1
    item.onShow.droppedCount += 1
    item.playerItem?.updateAccess(rung: item.playerItem?.rung.value) { $0.droppedFrameCount += 1 }
  }

  /// Skips a gap in the timeline before the frame at `time`, once playback has reached it. Returns when it
  /// will, if that is later.
  private mutating func skipGap(before time: MediaTime, at now: Duration, _ out: inout Effects) -> Duration? {
    guard item.onShow.skipsFrom == nil, let end = item.onShow.end, time - end > Self.gapLimit,
      item.frames.headFollowsGap(than: item.onShow.span)
    else { return nil }
    guard item.clock.time(at: now) >= end || isFast else { return item.clock.clockTime(of: end) }
    item.clock.setTime(time, at: now)
    item.onShow.skipsFrom = end
    let shift = item.onShow.shift
    out.tell(.gapSkipped(from: end - shift, to: time - shift), of: item.playerItem)
    return nil
  }
}
