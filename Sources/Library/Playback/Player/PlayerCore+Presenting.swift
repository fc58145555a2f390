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
    let (generation, hasFrame, isPlaying, rate, isCurrent, isHeard, hasBegun) = change { state, _ in
      (
        state.generation, state.hasFrame, state.machine.status == .playing && !state.isHeld,
        state.wantedRate, state.session === session, state.isHeard, state.outputTimeline.hasBegun
      )
    }
    // After a replacement or a seek there is another turn. The ring's answer must be of this generation: the
    // end of the previous one does not matter.
    guard isCurrent, session.generation == generation, let head = session.ring.head(generation: generation)
    else { return .idle }
    switch head {
    case .frame(let time, let following):
      if !hasBegun {
        change { state, _ in
          guard state.isCurrent(session, generation) else { return }
          state.outputTimeline.begin(firstFrame: time, shift: state.shift)
        }
      }
      if !hasFrame {
        return beginBeforeFirst(session, frame: time, generation: generation)
          ?? showFirst(session, generation: generation)
      }
      guard isPlaying else { return .idle }
      if rate == .infinity {
        skipGap(before: time, of: session, generation: generation, now: now)
        handOutAudio(session, until: time, generation: generation)
        if isHeard {
          // The frame waits for the audio before it. Nothing else delays it, and it may be the last frame.
          if session.isAudioDecoderBehind(time) { return .idle }
          if session.isAudioLoaderBehind(time) {
            return waitDry(session, generation: generation, now: now)
          }
        }
        show(session, generation: generation, due: nil)
        return .again
      }
      return showDue(session, time: time, following: following, generation: generation, now: now)
    case .empty:
      if let failure = session.failure, !hasFrame { return fail(session, failure, generation: generation) }
      if !hasFrame, let next = beginBeforeFirst(session, frame: nil, generation: generation) {
        return next
      }
      guard isPlaying else { return .idle }
      let time = state.read { $0.timebase.time(at: now) }
      if rate != .infinity { handOutAudio(session, until: time, generation: generation) }
      if session.absentKinds(at: time).contains(.video) {
        return playWithoutFrames(session, at: time, generation: generation, now: now)
      }
      let level = session.buffer.level
      guard level.isConsumed, !level.isComplete else {
        return rate == .infinity ? .idle : audioWait(session, now: now)
      }
      return waitDry(session, generation: generation, now: now)
    case .drained:
      return atEnd(session, hasFrame: hasFrame, isPlaying: isPlaying, generation: generation, now: now)
    }
  }

  func currentFrame() -> TimedFrame? {
    guard let box = state.read({ $0.onShow }) else { return nil }
    return try? box.frame.clone()
  }

  /// Waits without frames and without anything to decode. Playback stalls when the last frame's time is over.
  /// At a rate of `.infinity`, frames have no times: playback stalls after `dryTolerance` without a frame,
  /// counted from the beginning of the gap.
  func waitDry(_ session: ItemSession, generation: Int, now: Duration) -> TaskLoop.Next {
    let times = change { state, _ -> (since: Duration, due: Duration)? in
      guard state.isCurrent(session, generation) else { return nil }
      guard state.wantedRate == .infinity else {
        return (now, state.lastEnd.flatMap { state.timebase.clockTime(of: $0) } ?? now)
      }
      let since = state.drySince ?? now
      state.drySince = since
      return (since, since + Self.dryTolerance)
    }
    guard let times else { return .again }
    guard times.due > now else { return stall(session, generation: generation, since: times.since) }
    if case .at(let sound) = audioWait(session, now: now) { return .at(min(sound, times.due)) }
    return .at(times.due)
  }

  func stall(_ session: ItemSession, generation: Int, since: Duration) -> TaskLoop.Next {
    let now = clock.now
    change { state, out in
      guard state.isCurrent(session, generation) else { return }
      state.handle(.ranDry, at: now, began: since, &out)
    }
    return .again
  }

  /// Begins playback before the first frame if audio comes first. Returns nil otherwise, or if the player
  /// should not play yet: the first frame is then shown at once.
  ///
  /// - Parameter frame: The time of the first frame; nil if it is unknown or if there is none.
  func beginBeforeFirst(_ session: ItemSession, frame: MediaTime?, generation: Int) -> TaskLoop.Next? {
    let (isPlayWanted, sought, shift) = state.read { state in
      (state.machine.isPlayWanted, state.seek?.time, state.shift)
    }
    guard isPlayWanted else { return nil }
    let start: MediaTime
    if let frame {
      start = session.beginning(sought: sought, firstFrame: frame, shift: shift)
      guard start < frame else { return nil }
    } else {
      guard let sound = session.audio.nextTime, session.absentKinds(at: sound).contains(.video) else {
        return nil
      }
      start = max(sound, sought ?? sound)
    }
    let now = clock.now
    change { state, out in
      guard state.isCurrent(session, generation) else { return }
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
    _ session: ItemSession, at time: MediaTime, generation: Int, now: Duration
  ) -> TaskLoop.Next {
    if session.lacksAudio(at: time - Self.audioTolerance) {
      return stall(session, generation: generation, since: now)
    }
    extendLastFrame(to: time, session, generation: generation)
    return audioWait(session, now: now)
  }

  /// Extends the display of the last frame at least to `time`.
  private func extendLastFrame(to time: MediaTime, _ session: ItemSession, generation: Int) {
    change { state, _ in
      guard state.isCurrent(session, generation), let end = state.lastEnd, end < time else { return }
      state.lastEnd = time
    }
  }

  func showFirst(_ session: ItemSession, generation: Int) -> TaskLoop.Next {
    guard var frame = session.ring.take(generation: generation) else { return .again }
    session.recordFirstFrame()
    // The frame is kept until the item is played, and nobody is waiting for it now, so reduce its memory.
    if state.read({ $0.restsAtFirst }), let small = frame.compacted(for: account) { frame = small }
    let now = clock.now
    let time = frame.time
    let (isFirst, startup, start) = change { state, _ -> (Bool, Duration, MediaTime) in
      guard state.isCurrent(session, generation) else { return (false, .zero, time) }
      state.hasFrame = true
      // After an exact seek the clock starts at the requested time, which is within the frame's duration.
      let anchor = session.beginning(sought: state.seek?.time, firstFrame: time, shift: state.shift)
      state.timebase.setTime(anchor, at: now)
      let startup = now - session.startedAt
      let isFirst = state.statistics.startupTime == nil
      if isFirst {
        state.statistics.startupTime = startup
        state.statistics.times.record(.firstFrame, at: now)
      }
      return (isFirst, startup, anchor)
    }
    display(frame, session: session, generation: generation, due: nil)
    if session.lacksVideo(at: start - state.read { $0.shift }) {
      extendLastFrame(to: start, session, generation: generation)
    }
    // Report the stage only when the frame is on show.
    if state.read({ $0.isCurrent(session, generation) }) { session.reach(.firstFrame) }
    let item = session.item
    if isFirst { item.updateAccess(rung: item.rung.value) { $0.startupTime = startup } }
    change { state, out in
      guard state.isCurrent(session, generation) else { return }
      item.status.set(.readyToPlay)
      if isFirst { out.tell(.firstFrame(time: state.itemTime(at: now), after: startup), of: item) }
      state.frameShown(at: now, &out)
    }
    checkLevel(of: session, always: true)
    // The stages do not report a seek, because they never go back.
    if !isFirst { session.delegate.progress() }
    return .again
  }

  func showDue(
    _ session: ItemSession, time: MediaTime, following: MediaTime?, generation: Int, now: Duration
  ) -> TaskLoop.Next {
    let gapStart = skipGap(before: time, of: session, generation: generation, now: now)
    let (timebase, lastShownAt, isFirst) = state.read {
      ($0.timebase, $0.lastShownAt, $0.lastTime == nil)
    }
    handOutAudio(session, until: timebase.time(at: now), generation: generation)
    if lacksAudio(session, at: timebase.time(at: now) - Self.audioTolerance) {
      return stall(session, generation: generation, since: now)
    }
    // A first frame that comes after audio is shown, even if it is late: files begin with it.
    switch FramePacer().decision(
      next: time, following: isFirst ? nil : following, timebase: timebase, now: now, lastShownAt: lastShownAt
    )
    {
    case .show:
      show(session, generation: generation, due: timebase.clockTime(of: time))
      return .again
    case .drop:
      if session.ring.take(generation: generation) != nil {
        change { state, _ in
          guard state.isCurrent(session, generation) else { return }
          state.statistics.droppedFrameCount += 1
          state.droppedCount += 1
        }
        session.item.updateAccess(rung: session.item.rung.value) { $0.droppedFrameCount += 1 }
      }
      return .again
    case .wait(let due):
      let deadline = min(due, gapStart ?? due)
      extendLastFrame(to: timebase.time(at: now), session, generation: generation)
      guard let sound = session.audio.nextTime, let due = timebase.clockTime(of: sound), due < deadline else {
        return .at(deadline)
      }
      return .at(max(due, now))
    }
  }

  /// Waits until audio is due, which may be before the next frame is decoded.
  func audioWait(_ session: ItemSession, now: Duration) -> TaskLoop.Next {
    guard let sound = session.audio.nextTime,
      let due = state.read({ $0.timebase.clockTime(of: sound) })
    else { return .idle }
    return .at(max(due, now))
  }

  /// Skips a gap in the timeline before the frame at `time`, once playback has reached it. Returns when it
  /// will, if that is later.
  @discardableResult
  func skipGap(before time: MediaTime, of session: ItemSession, generation: Int, now: Duration) -> Duration? {
    enum Gap {
      case ahead(Duration?)
      case skipped(from: MediaTime, to: MediaTime)
    }
    let gap = change { state, _ -> Gap? in
      guard state.isCurrent(session, generation), state.skipsFrom == nil, let end = state.lastEnd,
        time - end > MediaTime(value: 3, timescale: 10),
        session.ring.headFollowsGap(generation: generation, than: state.lastSpan)
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

  func show(_ session: ItemSession, generation: Int, due: Duration?) {
    guard let frame = session.ring.take(generation: generation) else { return }
    let now = clock.now
    let startup = now - session.startedAt
    // The frame may be the first one even if audio was played before it.
    let isFirst = change { state, _ in
      guard state.isCurrent(session, generation), state.statistics.startupTime == nil else { return false }
      state.statistics.startupTime = startup
      return true
    }
    if isFirst { session.recordFirstFrame() }
    display(frame, session: session, generation: generation, due: due)
    guard isFirst else { return }
    session.reach(.firstFrame)
    let item = session.item
    item.updateAccess(rung: item.rung.value) { $0.startupTime = startup }
    emit(.firstFrame(time: state.read { $0.itemTime(at: now) }, after: startup), of: item)
  }

  /// Returns the media between the frame on show and one at `time` of which nothing is shown; nil if no loss
  /// is known. If no failure explains it, one is logged.
  private func loss(
    before frame: borrowing TimedFrame, at time: MediaTime, session: ItemSession, generation: Int
  ) -> MediaLoss? {
    let (span, length, followsDamage) = (frame.span, frame.displayTime, frame.followsDamage)
    let before = change { state, _ -> (end: MediaTime, jumped: Bool, dropped: Int, isAfterGap: Bool)? in
      guard state.isCurrent(session, generation), let end = state.ownEnd,
        span?.loop.iteration == state.lastSpan?.loop.iteration
      else { return nil }
      let isAfterGap = span !== state.lastSpan && span?.followsGap == true
      return (end, state.hasJumped, state.droppedCount, isAfterGap)
    }
    let shift = span?.shift ?? .zero
    // A frame may be longer or shorter than it states.
    guard let before, (time - before.end) * 2 > length else { return nil }
    let range = before.end - shift..<time - shift
    let reason: MediaLoss.Reason
    if before.jumped {
      reason = .jumped
    } else if (time - before.end - length * Int64(before.dropped)) * 2 <= length {
      reason = .dropped
    } else if let known = session.item.videoLoss(in: range) {
      reason = known
    } else if before.isAfterGap {
      reason = .missing
    } else if followsDamage {
      reason = .damaged
      let words = "no frame can be decoded \(range.words)"
      session.recordFailure(
        ReelError(.badMedia, words, at: session.item.source.name), rung: span?.rung?.id ?? "",
        outcome: .lost(MediaLoss(kind: .video, reason: .damaged, range: range)))
    } else if before.dropped > 0 {
      reason = .dropped
    } else {
      return nil
    }
    return MediaLoss(kind: .video, reason: reason, range: range)
  }

  private struct Shown {
    var outputs: [any FrameOutput]
    /// The span of the previous frame.
    var last: StreamSpan?
    var gap: Duration?
    /// The position of the media that is now seen and heard.
    var position: MediaTime
  }

  /// Shows a frame to all outputs, unless it is from an earlier generation.
  func display(
    _ taken: consuming TimedFrame, session: ItemSession, generation: Int, due: Duration?
  ) {
    var frame = taken
    let now = clock.now
    let span = frame.span
    let time = frame.time
    let length = frame.displayTime
    let isDamaged = frame.decoded.isDamaged
    let size = frame.geometry().output
    frame.time = time - (span?.shift ?? .zero)
    let placed = change { state, _ -> (skipped: MediaTime, outputTime: MediaTime)? in
      guard state.isCurrent(session, generation) else { return nil }
      defer { state.skipsFrom = nil }
      let outputTime = state.outputTimeline.place(frame, at: time, shift: span?.shift ?? .zero)
      return (state.skipsFrom.map { max(.zero, time - $0) } ?? .zero, outputTime)
    }
    guard let placed else { return }
    (frame.skipped, frame.outputTime) = placed
    frame.loss = self.loss(before: frame, at: time, session: session, generation: generation)
    let (loss, isLeftOut) = (frame.loss, frame.skipped > .zero)
    let startsDamage = isDamaged && !state.read { $0.isDamaged }
    let box = SharedFrame(frame)
    // Under one lock, so that neither outputs nor the item change in between.
    let shown = outputLock.withLock {
      let shown = change { state, _ -> Shown? in
        guard state.isCurrent(session, generation), (span?.loop.iteration ?? 0) <= state.lastIteration else {
          return nil
        }
        let last = state.lastSpan
        var gap: Duration?
        if let last, let span, span.loop.iteration > last.loop.iteration {
          gap = due.map { max(.zero, now - $0) } ?? .zero
          if let gap { state.statistics.loopGaps.append(gap) }
        }
        state.lastSpan = span ?? last
        state.lastShownAt = now
        state.drySince = nil
        state.lastTime = time
        if !isLeftOut { state.recordFreeze(over: loss, at: now) }
        state.lastEnd = time + length
        state.ownEnd = time + length
        state.hasJumped = false
        state.droppedCount = 0
        state.isDamaged = isDamaged
        // At a rate of `.infinity`, the clock follows the frames. Another rate continues from there.
        if state.wantedRate == .infinity { state.timebase.setTime(time, at: now) }
        state.onShow = box
        state.statistics.shownFrameCount += 1
        state.statistics.times.record(.frame, at: now)
        if isDamaged { state.statistics.damagedFrameCount += 1 }
        if let due { state.recordLateness(now - due) }
        // Audio may be playing at an earlier position; the buffer has to keep that media too.
        let position = min(time, state.timebase.time(at: now))
        return Shown(outputs: state.outputs, last: last, gap: gap, position: position)
      }
      if let shown { show(box, to: shown.outputs) { $0.onShow === box && $0.generation == generation } }
      return shown
    }
    guard let shown else { return }
    let item = session.item
    if startsDamage {
      let start = time - (span?.shift ?? .zero)
      let error = ReelError(
        .badMedia, "the frame at \(start.seconds.formatted(places: 3)) s is damaged", at: item.source.name)
      session.recordFailure(
        error, rung: span?.rung?.id ?? "",
        outcome: .lost(MediaLoss(kind: .video, reason: .damaged, range: start..<start + length)))
    }
    session.setPosition(shown.position)
    item.presentationSize.set(size)
    item.updateAccess(rung: span?.rung?.id) { $0.shownFrameCount += 1 }
    if let rung = span?.rung?.id, rung != item.rung.value {
      let old = item.rung.value
      item.rung.set(rung)
      if shown.last != nil {
        emit(
          .rungSwitched(from: old, to: rung, time: time - (span?.shift ?? .zero), cause: span?.switchCause),
          of: item)
      }
    }
    if let gap = shown.gap { emit(.looped(gap: gap), of: item) }
  }

  /// Shows a frame to outputs while it is still current: an output may use the player. Call with `outputLock`
  /// held.
  func show(_ frame: SharedFrame, to outputs: [any FrameOutput], while isWanted: (State) -> Bool) {
    for output in outputs {
      let isNext = change { state, _ in isWanted(state) && state.outputs.contains { $0 === output } }
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
  func handOutAudio(_ session: ItemSession, until time: MediaTime?, generation: Int) {
    let chunks = session.audio.take(until: time, generation: generation)
    if !chunks.isEmpty { handOut(chunks, of: session, generation: generation) }
    if session.audio.isDrained { announceSoundEnd(of: session, generation: generation) }
  }

  private func handOut(_ chunks: [AudioQueue.Chunk], of session: ItemSession, generation: Int) {
    outputLock.withLock {
      for chunk in chunks {
        let (attachments, volume, outputTime) = change {
          state, _ -> ([SoundAttachment], Float, MediaTime) in
          guard state.isCurrent(session, generation) else { return ([], 0, .zero) }
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
  private func announceSoundEnd(of session: ItemSession, generation: Int) {
    let outputs = change { state, _ -> [any AudioOutput] in
      guard state.isCurrent(session, generation), !state.hasAnnouncedSoundEnd,
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
