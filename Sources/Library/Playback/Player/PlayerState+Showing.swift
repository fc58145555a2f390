internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
internal import ReelReading
internal import ReelSources

/// A frame that was put on show.
struct NewFrame {
  let frame: VideoFrame
  let session: ItemSession
  let job: DecodingJob
  let outputs: [any FrameOutput]
  /// True if another frame of the item was shown before.
  let hasPredecessor: Bool
  /// How late the frame is, if an iteration begins with it.
  let loopGap: Duration?
  /// The time from the beginning of loading, if this is the item's first frame.
  let startup: Duration?
  /// True if this is the first frame since the start or a seek, and no audio was played before it.
  let beginsJob: Bool
}

/// Audio that was taken to be heard.
struct NewSound {
  let chunk: AudioQueue.Chunk
  let outputTime: MediaTime
  let attachments: [PlayerState.SoundAttachment]
  let volume: Float
}

/// Showing a frame: it is taken and put on show in one change, then outputs are called, then observers are told.
extension PlayerState {
  /// Takes the next frame and puts it on show: no frame is ever taken and not shown. Returns nil if there is none
  /// any more, because of a seek or another item, or if the player is held.
  ///
  /// - Parameter due: When the frame was due; nil if it has no due time.
  mutating func take(_ job: DecodingJob, due: Duration?, at now: Duration, _ out: inout Effects) -> NewFrame?
  {
    let beginsJob = item.playback.isOpening
    guard item.videoJob === job, beginsJob || !isHeld, let session = item.session,
      var frame = item.takeFrame(&out)
    else { return nil }
    let (span, time, length, isDamaged) = (frame.span, frame.time, frame.displayTime, frame.isDamaged)
    let shift = span?.shift ?? .zero
    let startup = item.statistics.startupTime == nil ? now - session.startedAt : nil
    if let startup {
      item.statistics.startupTime = startup
      // The decoding time was recorded before the ring received the frame.
      session.recorder.close(
        StartupReport.Timing(
          source: item.readerWait, demux: item.readerBusy,
          decode: item.decoding.firstFrameDuration ?? item.decoding.duration))
      session.item.setStartup(session.recorder.current)
    }
    var anchor: MediaTime?
    if beginsJob {
      // After an exact seek the clock starts at the requested time, which is within the frame's duration.
      let start = item.beginning(firstFrame: time)
      item.clock.setTime(start, at: now)
      anchor = start
      if startup != nil { item.statistics.times.record(.firstFrame, at: now) }
    }
    frame.time = time - shift
    frame.outputTime = outputTimeline.place(frame, at: time, shift: shift)
    frame.skipped = item.onShow.skipsFrom.map { max(.zero, time - $0) } ?? .zero
    frame.loss = loss(before: frame, at: time)
    if isDamaged, !item.onShow.isDamaged { logDamage(of: frame, length) }
    if frame.skipped == .zero { recordFreeze(over: frame.loss, at: now) }
    let last = item.onShow.span
    var loopGap: Duration?
    if let last, let span, span.loop.iteration > last.loop.iteration {
      loopGap = due.map { max(.zero, now - $0) } ?? .zero
    }
    session.item.observed.presentationSize.set(frame.presentationSize)
    session.item.updateAccess(rung: span?.rung?.id) { $0.shownFrameCount += 1 }
    out.free(item.onShow.frame)
    item.onShow = OnShow(
      frame: frame, span: span ?? last, time: time, shownAt: now, end: time + length, ownEnd: time + length,
      isDamaged: isDamaged)
    if let anchor, time + length < anchor, item.lacksVideo(at: anchor - item.onShow.shift) {
      item.onShow.end = anchor
    }
    // At a rate of `.infinity`, the clock follows the frames. Another rate continues from there.
    if isFast { item.clock.setTime(time, at: now) }
    item.statistics.shownFrameCount += 1
    item.statistics.times.record(.frame, at: now)
    if isDamaged { item.statistics.damagedFrameCount += 1 }
    if let due { recordLateness(now - due) }
    // Audio may be playing at an earlier position; the buffer has to keep that media too.
    item.setPosition(min(time, item.clock.time(at: now)), &out)
    return NewFrame(
      frame: frame, session: session, job: job, outputs: outputs, hasPredecessor: last != nil,
      loopGap: loopGap,
      startup: startup, beginsJob: beginsJob)
  }

  /// Tells observers of a frame that outputs have been called with, and continues after the first one of a position.
  mutating func shown(_ new: NewFrame, at now: Duration, _ out: inout Effects) {
    guard item.session === new.session else { return }
    let (played, span) = (new.session.item, new.frame.span)
    if let rung = span?.rung?.id, rung != played.rung.value {
      let old = played.rung.value
      played.observed.rung.set(rung)
      if new.hasPredecessor {
        out.tell(
          .rungSwitched(from: old, to: rung, time: new.frame.time, cause: span?.switchCause), of: played
        )
      }
    }
    if let gap = new.loopGap {
      item.statistics.loopGaps.append(gap)
      out.tell(.looped(gap: gap), of: played)
    }
    // An output may have sought another position.
    if new.beginsJob, item.videoJob !== new.job { return }
    if new.beginsJob || new.startup != nil { item.reach(.firstFrame, &out) }
    if new.beginsJob { played.observed.status.set(.readyToPlay) }
    if let startup = new.startup {
      played.updateAccess(rung: played.rung.value) { $0.startupTime = startup }
      out.tell(.firstFrame(time: itemTime(at: now), after: startup), of: played)
    }
    guard new.beginsJob else { return }
    beginPlaying(at: now, &out)
    // The stages do not report a seek, because they never go back.
    if new.startup == nil { out.signal(.progressed) }
  }

  /// Takes audio that is due by `time`; nil if there is none any more.
  mutating func takeSound(_ job: DecodingJob, until time: MediaTime?, _ out: inout Effects) -> NewSound? {
    guard item.videoJob === job, let chunk = item.takeAudio(until: time, &out) else { return nil }
    return NewSound(
      chunk: chunk, outputTime: outputTimeline.place(chunk), attachments: isMuted ? [] : audioOutputs,
      volume: volume)
  }

  /// Returns the outputs to notify that the audio has ended, once.
  mutating func takeSoundEnd(_ job: DecodingJob) -> [any AudioOutput] {
    guard item.videoJob === job, isSoundEndDue else { return [] }
    item.hasAnnouncedSoundEnd = true
    return audioOutputs.map(\.output)
  }

  // MARK: - Private

  private func logDamage(of frame: VideoFrame, _ length: MediaTime) {
    let start = frame.time
    let error = ReelError(
      .badMedia, "the frame at \(start.seconds.formatted(places: 3)) s is damaged",
      at: item.playerItem?.source.name)
    item.log(
      error, rung: frame.span?.rung?.id ?? "",
      .lost(MediaLoss(kind: .video, reason: .damaged, range: start..<start + length)))
  }

  /// Returns the media that is lost between the frame on show and one at `time`; nil if no loss
  /// is known.
  private func loss(before frame: VideoFrame, at time: MediaTime) -> MediaLoss? {
    let (span, length) = (frame.span, frame.displayTime)
    let onShow = item.onShow
    // A frame may be longer or shorter than it states.
    guard let end = onShow.ownEnd, span?.loop.iteration == onShow.span?.loop.iteration,
      (time - end) * 2 > length
    else { return nil }
    let shift = span?.shift ?? .zero
    let range = end - shift..<time - shift
    let reason: MediaLoss.Reason
    if onShow.hasJumped {
      reason = .jumped
    } else if (time - end - length * Int64(onShow.droppedCount)) * 2 <= length {
      reason = .dropped
    } else if let known = item.playerItem?.videoLoss(in: range) {
      reason = known
    } else if span !== onShow.span, span?.followsGap == true {
      reason = .missing
    } else if onShow.droppedCount > 0 {
      reason = .dropped
    } else {
      return nil
    }
    return MediaLoss(kind: .video, reason: reason, range: range)
  }

  /// Records that the last frame stayed on show until now over media that is lost.
  private mutating func recordFreeze(over loss: MediaLoss?, at now: Duration) {
    guard let loss, loss.reason != .dropped, wantedRate.isFinite, let ownEnd = item.onShow.ownEnd,
      !item.onShow.hasJumped, let due = item.clock.clockTime(of: ownEnd)
    else { return }
    item.statistics.times.record(.freeze(since: due), at: now)
  }

  private mutating func recordLateness(_ lateness: Duration) {
    if item.statistics.lateness.count < 8192 {
      item.statistics.lateness.append(lateness)
    } else {
      item.statistics.lateness[item.latenessIndex] = lateness
      item.latenessIndex = (item.latenessIndex + 1) % item.statistics.lateness.count
    }
  }
}

/// The level of the buffer, and the distance from the live edge.
extension PlayerState {
  private static let levelInterval = Duration.milliseconds(50)

  /// While playing, at most every `levelInterval`.
  mutating func updateLevelIfDue(at now: Duration, _ out: inout Effects) {
    if status == .playing, let last = item.levelCheckedAt, now - last < Self.levelInterval { return }
    updateLevel(at: now, &out)
  }

  /// Publishes the buffer level, begins or resumes playback if the buffer is likely to keep up, and lets a live item
  /// follow its edge.
  mutating func updateLevel(at now: Duration, _ out: inout Effects) {
    item.levelCheckedAt = now
    let (isPlaying, isStalled) = (status == .playing, item.playback.stalledAt != nil)
    let time = item.clock.time(at: now)
    // While only audio plays, the position follows the clock.
    let lacksFrames =
      item.onShow.time.map { time - $0 > MediaTime(value: 1, timescale: 2) } ?? !item.playback.isOpening
    if isPlaying, lacksFrames { item.setPosition(time, &out) }
    var keepsUp = publishLevel(isStalled: isStalled, at: time, &out)
    // With less audio, playback would stall again at once, regardless of the level.
    if isStalled, item.lacksAudio(at: time - Self.audioTolerance) { keepsUp = false }
    // Playback does not begin while the audio decoder is behind.
    if !isPlaying, isHeard, item.isAudioDecoderBehind(time) { keepsUp = false }
    if keepsUp { keepUp(at: now, &out) }
    followLive(at: now, &out)
  }

  // MARK: - Private

  /// Publishes the buffer level. Returns true if playback can start or resume and is then unlikely to stall.
  private mutating func publishLevel(isStalled: Bool, at time: MediaTime, _ out: inout Effects) -> Bool {
    guard let session = item.session else { return false }
    let played = session.item
    let level = item.packets.level(without: item.absentKinds(at: time))
    let isRingEmpty = item.frames.isEmpty
    let isMuxedAudioBehind = item.hasSeparateAudio == false && item.isAudioLoaderBehind(time)
    let isDry = level.isConsumed && !level.isComplete && isRingEmpty
    let keepsUp =
      !isDry
      && session.core.configuration.thresholds.isLikelyToKeepUp(
        buffered: .seconds(level.ahead.seconds),
        target: item.target?.bufferDuration ?? played.forwardBufferDuration, isComplete: level.isComplete,
        isFull: level.isResting, isAfterStall: isStalled || isMuxedAudioBehind, rate: wantedRate)
    let isFull = level.isFull || level.isComplete
    played.observed.loadedTimeRanges.set(level.range.map { [$0] } ?? [])
    played.observed.isPlaybackBufferFull.set(isFull)
    played.observed.isPlaybackBufferEmpty.set(level.isConsumed && isRingEmpty)
    played.observed.isPlaybackLikelyToKeepUp.set(keepsUp)
    // A buffer that was full before the first frame of its position was known may be short of it by a frame, and rests.
    if isFull || level.isResting, played.preloadStage.value == .firstFrame { item.reach(.buffered, &out) }
    // Reported once, and again if the buffer is full with other limits.
    let limits = isFull ? session.limits(for: item.target) : nil
    if limits != nil, item.filledLimits != limits { out.signal(.filled) }
    item.filledLimits = limits
    return keepsUp
  }

  /// Keeps a live item at its distance from the live edge.
  private mutating func followLive(at now: Duration, _ out: inout Effects) {
    let time = item.clock.time(at: now)
    let isStalled = item.playback.stalledAt != nil
    guard hasCurrentFrame, let distances = item.liveDistances(from: time) else { return }
    item.playerItem?.observed.liveLatency.set(distances.latency)
    guard status == .playing || isStalled, wantedRate.isFinite else { return }
    let action = item.following.catchUp.action(
      latency: distances.latency, target: item.following.target ?? distances.target,
      oldestLatency: distances.limit,
      segmentDuration: distances.segmentDuration, userRate: wantedRate, isStalled: isStalled)
    switch action {
    case .normal: setLiveFactor(1, at: now)
    case .rate(let factor): setLiveFactor(factor, at: now)
    case .jump(let latency):
      let wanted = distances.edge - MediaTime(seconds: latency / .seconds(1))
      if !isStalled, item.live?.isOutdated(at: wanted) == true {
        // After a long pause, the place is known once the reader, which rests, has looked for newer segments. In a stall
        // it does not rest, and the jump frees it from a transfer that hangs.
        item.following.lookout = wanted
        return out.wake(.reader)
      }
      let end = max(time, item.onShow.end ?? time)
      guard let to = item.live?.place(near: wanted, after: end) else { return }
      setLiveFactor(1, at: now)
      item.following.target = nil
      _ = seek(to: to, at: now, &out)
      out.tell(.jumpedToLive(from: time, to: to), of: item.playerItem)
    }
  }

  private mutating func setLiveFactor(_ factor: Double, at now: Duration) {
    guard item.following.factor != factor else { return }
    item.following.factor = factor
    if item.clock.rate > 0 { item.clock.setRate(clockRate, at: now) }
  }
}
