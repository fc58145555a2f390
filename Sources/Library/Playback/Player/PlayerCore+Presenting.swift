internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// The turns of the task loop that shows frames and passes audio to outputs.
extension PlayerCore {
  /// Runs one turn: shows the frames that are due.
  func present() -> TaskLoop.Next {
    while true {
      guard let session = state.read({ $0.session }) else { return .idle }
      checkLevel(of: session)
      switch step(session) {
      case .again: continue
      case .idle: return .idle
      case .at(let deadline): return .at(deadline)
      }
    }
  }

  func step(_ session: ItemSession) -> TaskLoop.Next {
    let now = clock.now
    let (job, hasFrame, isPlaying, rate, isCurrent, isHeard, hasBegun) = state.read { state in
      (
        state.job, state.hasFrame, state.machine.status == .playing && !state.isHeld,
        state.wantedRate, state.session === session, state.isHeard, state.outputTimeline.hasBegun
      )
    }
    // After a replacement or a seek there is another turn.
    guard isCurrent, let job, let head = session.head(of: job) else { return .idle }
    switch head {
    case .frame(let time, let following):
      if !hasBegun {
        change { state, _ in
          guard state.isCurrent(session, job) else { return }
          state.outputTimeline.begin(firstFrame: time, shift: state.shift)
        }
      }
      if !hasFrame {
        return beginBeforeFirst(session, frame: time, job: job)
          ?? showFirst(session, job: job)
      }
      guard isPlaying else { return .idle }
      if rate == .infinity {
        skipGap(before: time, of: session, job: job, now: now)
        handOutAudio(session, until: time, job: job)
        if isHeard {
          // The frame waits for the audio before it. Nothing else delays it, and it may be the last frame.
          if session.isAudioDecoderBehind(time) { return .idle }
          if session.isAudioLoaderBehind(time) {
            return waitDry(session, job: job, now: now)
          }
        }
        show(session, job: job, due: nil)
        return .again
      }
      return showDue(session, time: time, following: following, job: job, now: now)
    case .empty:
      if let failure = session.failure, !hasFrame { return fail(session, failure, job: job) }
      if !hasFrame, let next = beginBeforeFirst(session, frame: nil, job: job) {
        return next
      }
      guard isPlaying else { return .idle }
      let time = state.read { $0.timebase.time(at: now) }
      if rate != .infinity { handOutAudio(session, until: time, job: job) }
      if session.absentKinds(at: time).contains(.video) {
        return playWithoutFrames(session, at: time, job: job, now: now)
      }
      let level = session.level
      guard level.isConsumed, !level.isComplete else {
        return rate == .infinity ? .idle : audioWait(session, now: now)
      }
      return waitDry(session, job: job, now: now)
    case .drained:
      return atEnd(session, hasFrame: hasFrame, isPlaying: isPlaying, job: job, now: now)
    }
  }

  func currentFrame() -> TimedFrame? {
    guard let box = state.read({ $0.onShow }) else { return nil }
    return try? box.frame.clone()
  }

  /// Waits without frames and without anything to decode. Playback stalls when the last frame's time is over.
  /// At a rate of `.infinity`, frames have no times: playback stalls after `dryTolerance` without a frame,
  /// counted from the beginning of the gap.
  func waitDry(_ session: ItemSession, job: DecodingJob, now: Duration) -> TaskLoop.Next {
    let times = change { state, _ -> (since: Duration, due: Duration)? in
      guard state.isCurrent(session, job) else { return nil }
      guard state.wantedRate == .infinity else {
        return (now, state.lastEnd.flatMap { state.timebase.clockTime(of: $0) } ?? now)
      }
      let since = state.drySince ?? now
      state.drySince = since
      return (since, since + Self.dryTolerance)
    }
    guard let times else { return .again }
    guard times.due > now else { return stall(session, job: job, since: times.since) }
    if case .at(let sound) = audioWait(session, now: now) { return .at(min(sound, times.due)) }
    return .at(times.due)
  }

  func stall(_ session: ItemSession, job: DecodingJob, since: Duration) -> TaskLoop.Next {
    let now = clock.now
    change { state, out in
      guard state.isCurrent(session, job) else { return }
      state.handle(.ranDry, at: now, began: since, &out)
    }
    return .again
  }

  /// Begins playback before the first frame if audio comes first. Returns nil otherwise, or if the player
  /// should not play yet: the first frame is then shown at once.
  ///
  /// - Parameter frame: The time of the first frame; nil if it is unknown or if there is none.
  func beginBeforeFirst(_ session: ItemSession, frame: MediaTime?, job: DecodingJob) -> TaskLoop.Next? {
    let (isPlayWanted, sought, shift) = state.read { state in
      (state.machine.isPlayWanted, state.seek?.time, state.shift)
    }
    guard isPlayWanted else { return nil }
    let start: MediaTime
    if let frame {
      start = session.beginning(sought: sought, firstFrame: frame, shift: shift)
      guard start < frame else { return nil }
    } else {
      guard let sound = session.nextAudioTime, session.absentKinds(at: sound).contains(.video) else {
        return nil
      }
      start = max(sound, sought ?? sound)
    }
    let now = clock.now
    change { state, out in
      guard state.isCurrent(session, job) else { return }
      state.hasFrame = true
      // Show the first frame when it is due, not at once.
      state.lastShownAt = now
      state.timebase.setTime(start, at: now)
      session.item.status.set(.readyToPlay)
      state.frameShown(at: now, &out)
    }
    checkLevel(of: session, always: true)
    return .again
  }

  /// Plays audio only, while the last frame stays on show.
  func playWithoutFrames(
    _ session: ItemSession, at time: MediaTime, job: DecodingJob, now: Duration
  ) -> TaskLoop.Next {
    if session.lacksAudio(at: time - Self.audioTolerance) {
      return stall(session, job: job, since: now)
    }
    extendLastFrame(to: time, session, job: job)
    return audioWait(session, now: now)
  }

  /// Extends the display of the last frame at least to `time`.
  private func extendLastFrame(to time: MediaTime, _ session: ItemSession, job: DecodingJob) {
    change { state, _ in
      guard state.isCurrent(session, job), let end = state.lastEnd, end < time else { return }
      state.lastEnd = time
    }
  }

  func showFirst(_ session: ItemSession, job: DecodingJob) -> TaskLoop.Next {
    guard let shown = show(session, job: job, due: nil) else { return .again }
    // The frame is kept until the item is played, and nobody is waiting for it now, so reduce its memory.
    if state.read({ $0.restsAtFirst }), let small = shown.frame.frame.compacted(for: account) {
      let small = SharedFrame(small)
      change { state, out in
        guard state.onShow === shown.frame else { return }
        out.free(state.onShow)
        state.onShow = small
      }
    }
    let now = clock.now
    // Report the stage only when the frame is on show.
    if state.read({ $0.isCurrent(session, job) }) { session.reach(.firstFrame) }
    change { state, out in
      guard state.isCurrent(session, job) else { return }
      session.item.status.set(.readyToPlay)
      state.tellFirstFrame(shown, of: session.item, at: now, &out)
      state.frameShown(at: now, &out)
    }
    checkLevel(of: session, always: true)
    // The stages do not report a seek, because they never go back.
    if shown.startup == nil { session.delegate.progress() }
    return .again
  }

  func showDue(
    _ session: ItemSession, time: MediaTime, following: MediaTime?, job: DecodingJob, now: Duration
  ) -> TaskLoop.Next {
    let gapStart = skipGap(before: time, of: session, job: job, now: now)
    let (timebase, lastShownAt, isFirst) = state.read {
      ($0.timebase, $0.lastShownAt, $0.lastTime == nil)
    }
    handOutAudio(session, until: timebase.time(at: now), job: job)
    if lacksAudio(session, at: timebase.time(at: now) - Self.audioTolerance) {
      return stall(session, job: job, since: now)
    }
    // A first frame that comes after audio is shown, even if it is late: files begin with it.
    switch FramePacer().decision(
      next: time, following: isFirst ? nil : following, timebase: timebase, now: now, lastShownAt: lastShownAt
    )
    {
    case .show:
      show(session, job: job, due: timebase.clockTime(of: time))
      return .again
    case .drop:
      let isDropped = change { state, out in
        guard state.isCurrent(session, job), let frame = session.takeFrame(of: job, &out) else {
          return false
        }
        out.free(frame)
        state.statistics.droppedFrameCount += 1
        state.droppedCount += 1
        return true
      }
      if isDropped { session.item.updateAccess(rung: session.item.rung.value) { $0.droppedFrameCount += 1 } }
      return .again
    case .wait(let due):
      let deadline = min(due, gapStart ?? due)
      extendLastFrame(to: timebase.time(at: now), session, job: job)
      guard let sound = session.nextAudioTime, let due = timebase.clockTime(of: sound), due < deadline else {
        return .at(deadline)
      }
      return .at(max(due, now))
    }
  }

  /// Waits until audio is due, which may be before the next frame is decoded.
  func audioWait(_ session: ItemSession, now: Duration) -> TaskLoop.Next {
    guard let sound = session.nextAudioTime,
      let due = state.read({ $0.timebase.clockTime(of: sound) })
    else { return .idle }
    return .at(max(due, now))
  }

  /// Skips a gap in the timeline before the frame at `time`, once playback has reached it. Returns when it
  /// will, if that is later.
  @discardableResult
  func skipGap(before time: MediaTime, of session: ItemSession, job: DecodingJob, now: Duration) -> Duration?
  {
    enum Gap {
      case ahead(Duration?)
      case skipped(from: MediaTime, to: MediaTime)
    }
    let gap = change { state, _ -> Gap? in
      guard state.isCurrent(session, job), state.skipsFrom == nil, let end = state.lastEnd,
        time - end > MediaTime(value: 3, timescale: 10),
        session.headFollowsGap(than: state.lastSpan)
      else { return nil }
      guard state.timebase.time(at: now) >= end || state.wantedRate == .infinity else {
        return .ahead(state.timebase.clockTime(of: end))
      }
      state.timebase.setTime(time, at: now)
      state.skipsFrom = end
      return .skipped(from: end - state.shift, to: time - state.shift)
    }
    switch gap {
    case nil: return nil
    case .ahead(let start): return start
    case .skipped(let start, let end):
      emit(.gapSkipped(from: start, to: end), of: session.item)
      return nil
    }
  }

  /// Puts the next frame on show and shows it to all outputs. Returns nil if there is none any more, because of a
  /// seek or another item.
  @discardableResult
  func show(_ session: ItemSession, job: DecodingJob, due: Duration?) -> Shown? {
    let now = clock.now
    // Under one lock, so that neither outputs nor the item change in between.
    let shown = outputLock.withLock {
      let shown = change { $0.showNext(of: session, job, due: due, at: now, &$1) }
      if let shown { show(shown.frame, to: shown.outputs) { $0.onShow === shown.frame && $0.job === job } }
      return shown
    }
    guard let shown else { return nil }
    let item = session.item
    let span = shown.frame.frame.span
    let time = shown.frame.frame.time
    item.presentationSize.set(shown.frame.frame.geometry().output)
    item.updateAccess(rung: span?.rung?.id) { $0.shownFrameCount += 1 }
    if shown.startup != nil, !shown.beginsJob { session.reach(.firstFrame) }
    let isSwitch = span?.rung.map { $0.id != item.rung.value } ?? false
    guard shown.loopGap != nil || isSwitch || shown.startup != nil else { return shown }
    change { state, out in
      if let rung = span?.rung?.id, isSwitch {
        let old = item.rung.value
        item.rung.set(rung)
        if shown.last != nil {
          out.tell(.rungSwitched(from: old, to: rung, time: time, cause: span?.switchCause), of: item)
        }
      }
      if let gap = shown.loopGap { out.tell(.looped(gap: gap), of: item) }
      if !shown.beginsJob { state.tellFirstFrame(shown, of: item, at: now, &out) }
    }
    return shown
  }

  /// Shows a frame to outputs while it is still current: an output may use the player. Call with `outputLock`
  /// held.
  func show(_ frame: SharedFrame, to outputs: [any FrameOutput], while isWanted: (borrowing State) -> Bool) {
    for output in outputs {
      let isNext = state.read { state in isWanted(state) && state.outputs.contains { $0 === output } }
      guard isNext else { continue }
      do {
        try output.show(frame.frame)
      } catch {
        detachFailing(output, error as? ReelError ?? ReelError(.cannotWriteOutput, "\(error)"))
      }
    }
  }

  func detachFailing(_ output: any FrameOutput, _ error: ReelError) {
    let wasAttached = change { state, _ in state.remove(output) }
    guard wasAttached else { return }
    try? output.finish()
    emit(.outputFailed(error), of: nil)
  }

  // MARK: Sound

  /// Returns true if audio due at `time` is late: because of its loader if it is a separate stream, or
  /// because of its decoder if an output uses it.
  func lacksAudio(_ session: ItemSession, at time: MediaTime) -> Bool {
    if session.lacksAudio(at: time) { return true }
    // A player that does not wait would pause, although the machine may only be busy.
    let waits = state.read { $0.isHeard && $0.settings.waitsToMinimizeStalls }
    return waits && session.isAudioDecoderBehind(time)
  }

  /// Passes audio that is due by `time` to outputs; nil for all decoded audio.
  ///
  /// Audio follows the clock of the frames: it waits with them in a stall, and follows them at other rates
  /// without being stretched.
  func handOutAudio(_ session: ItemSession, until time: MediaTime?, job: DecodingJob) {
    let chunks = session.takeAudio(until: time, of: job)
    if !chunks.isEmpty { handOut(chunks, of: session, job: job) }
    if session.isAudioDrained { announceSoundEnd(of: session, job: job) }
  }

  private func handOut(_ chunks: [AudioQueue.Chunk], of session: ItemSession, job: DecodingJob) {
    outputLock.withLock {
      for chunk in chunks {
        let (attachments, volume, outputTime) = change {
          state, _ -> ([SoundAttachment], Float, MediaTime) in
          guard state.isCurrent(session, job) else { return ([], 0, .zero) }
          let outputTime = state.outputTimeline.place(chunk)
          return (state.isMuted ? [] : state.audioOutputs, state.volume, outputTime)
        }
        guard !attachments.isEmpty else { continue }
        var buffer = chunk.buffer
        buffer.scale(by: volume)
        for attachment in attachments {
          let output = attachment.output
          guard state.read({ $0.audioOutputs.contains { $0.output === output } }) else { continue }
          do {
            try output.write(
              TimedAudio(
                buffer, time: chunk.time - chunk.shift, outputTime: outputTime - attachment.start))
          } catch {
            detachFailing(output, error as? ReelError ?? ReelError(.cannotWriteOutput, "\(error)"))
          }
        }
      }
    }
  }

  /// Notifies outputs once that the audio has ended. Not for an item that loops, because more audio follows.
  private func announceSoundEnd(of session: ItemSession, job: DecodingJob) {
    let outputs = change { state, _ -> [any AudioOutput] in
      guard state.isCurrent(session, job), !state.hasAnnouncedSoundEnd,
        state.settings.actionAtItemEnd != .loop
      else { return [] }
      state.hasAnnouncedSoundEnd = true
      return state.audioOutputs.map(\.output)
    }
    guard !outputs.isEmpty else { return }
    outputLock.withLock { for output in outputs { output.soundEnded() } }
  }

  func detachFailing(_ output: any AudioOutput, _ error: ReelError) {
    let wasAttached = change { state, _ in state.remove(output) }
    guard wasAttached else { return }
    try? output.finish()
    emit(.outputFailed(error), of: nil)
  }
}
