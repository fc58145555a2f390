internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

extension PlayerCore {
  /// A frame that was put on show.
  struct Shown {
    let frame: SharedFrame
    let outputs: [any FrameOutput]
    /// The span of the previous frame.
    let last: StreamSpan?
    /// How late the frame is, if an iteration begins with it.
    let loopGap: Duration?
    /// The time from the beginning of loading, if this is the item's first frame.
    let startup: Duration?
    /// True if this is the first frame since the start or a seek, and no audio was played before it.
    let beginsJob: Bool
  }
}

extension PlayerCore.State {
  /// Takes the next frame and puts it on show, in one change: no frame is ever taken and not shown. Returns nil if
  /// there is none any more, or if the player is held.
  ///
  /// - Parameter due: When the frame was due; nil if it has no due time.
  mutating func showNext(
    of session: ItemSession, _ job: DecodingJob, due: Duration?, at now: Duration, _ out: inout Effects
  ) -> PlayerCore.Shown? {
    let beginsJob = !hasFrame
    guard isCurrent(session, job), beginsJob || !isHeld, var frame = session.takeFrame(of: job, &out) else {
      return nil
    }
    let (span, time, length, isDamaged) = (frame.span, frame.time, frame.displayTime, frame.decoded.isDamaged)
    let shift = span?.shift ?? .zero
    let startup = statistics.startupTime == nil ? now - session.startedAt : nil
    if let startup { statistics.startupTime = startup }
    if beginsJob || startup != nil { session.recordFirstFrame(&out) }
    var anchor: MediaTime?
    if beginsJob {
      hasFrame = true
      // After an exact seek the clock starts at the requested time, which is within the frame's duration.
      let start = session.beginning(sought: seek?.time, firstFrame: time, shift: self.shift)
      timebase.setTime(start, at: now)
      anchor = start
      if startup != nil { statistics.times.record(.firstFrame, at: now) }
    }
    frame.time = time - shift
    frame.outputTime = outputTimeline.place(frame, at: time, shift: shift)
    frame.skipped = skipsFrom.map { max(.zero, time - $0) } ?? .zero
    skipsFrom = nil
    frame.loss = loss(before: frame, at: time, of: session)
    if isDamaged, !self.isDamaged { logDamage(of: frame, length, in: session) }
    if frame.skipped == .zero { recordFreeze(over: frame.loss, at: now) }
    let last = lastSpan
    var loopGap: Duration?
    if let last, let span, span.loop.iteration > last.loop.iteration {
      let gap = due.map { max(.zero, now - $0) } ?? .zero
      statistics.loopGaps.append(gap)
      loopGap = gap
    }
    lastSpan = span ?? last
    lastShownAt = now
    drySince = nil
    lastTime = time
    lastEnd = time + length
    ownEnd = time + length
    hasJumped = false
    droppedCount = 0
    self.isDamaged = isDamaged
    if let anchor, time + length < anchor, session.lacksVideo(at: anchor - self.shift) { lastEnd = anchor }
    // At a rate of `.infinity`, the clock follows the frames. Another rate continues from there.
    if wantedRate == .infinity { timebase.setTime(time, at: now) }
    statistics.shownFrameCount += 1
    statistics.times.record(.frame, at: now)
    if isDamaged { statistics.damagedFrameCount += 1 }
    if let due { recordLateness(now - due) }
    let shared = SharedFrame(frame)
    out.free(onShow)
    onShow = shared
    // Audio may be playing at an earlier position; the buffer has to keep that media too.
    let position = min(time, timebase.time(at: now))
    session.change(in: &out) { $0.setPosition(position, &$1) }
    return PlayerCore.Shown(
      frame: shared, outputs: outputs, last: last, loopGap: loopGap, startup: startup, beginsJob: beginsJob)
  }

  /// Tells observers of the item's first frame, if this is it.
  func tellFirstFrame(_ shown: PlayerCore.Shown, of item: PlayerItem, at now: Duration, _ out: inout Effects)
  {
    guard let startup = shown.startup else { return }
    item.updateAccess(rung: item.rung.value) { $0.startupTime = startup }
    out.tell(.firstFrame(time: itemTime(at: now), after: startup), of: item)
  }

  // MARK: - Private

  private func logDamage(of frame: borrowing TimedFrame, _ length: MediaTime, in session: ItemSession) {
    let start = frame.time
    let error = ReelError(
      .badMedia, "the frame at \(start.seconds.formatted(places: 3)) s is damaged",
      at: session.item.source.name)
    session.recordFailure(
      error, rung: frame.span?.rung?.id ?? "",
      outcome: .lost(MediaLoss(kind: .video, reason: .damaged, range: start..<start + length)))
  }

  /// Returns the media between the frame on show and one at `time` of which nothing is shown; nil if no loss
  /// is known. If no failure explains it, one is logged.
  private func loss(
    before frame: borrowing TimedFrame, at time: MediaTime, of session: ItemSession
  ) -> MediaLoss? {
    let (span, length) = (frame.span, frame.displayTime)
    // A frame may be longer or shorter than it states.
    guard let end = ownEnd, span?.loop.iteration == lastSpan?.loop.iteration, (time - end) * 2 > length else {
      return nil
    }
    let shift = span?.shift ?? .zero
    let range = end - shift..<time - shift
    let reason: MediaLoss.Reason
    if hasJumped {
      reason = .jumped
    } else if (time - end - length * Int64(droppedCount)) * 2 <= length {
      reason = .dropped
    } else if let known = session.item.videoLoss(in: range) {
      reason = known
    } else if span !== lastSpan, span?.followsGap == true {
      reason = .missing
    } else if frame.followsDamage {
      reason = .damaged
      let words = "no frame can be decoded \(range.words)"
      session.recordFailure(
        ReelError(.badMedia, words, at: session.item.source.name), rung: span?.rung?.id ?? "",
        outcome: .lost(MediaLoss(kind: .video, reason: .damaged, range: range)))
    } else if droppedCount > 0 {
      reason = .dropped
    } else {
      return nil
    }
    return MediaLoss(kind: .video, reason: reason, range: range)
  }
}
