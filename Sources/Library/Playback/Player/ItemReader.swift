internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
internal import ReelReading
internal import ReelSources

/// Moves packets of an item from its source to the forward buffer: of video and muxed audio, or of separate audio.
///
/// Confined to the turns of its task loop. Between turns it owns its demuxer, and nothing else.
final class ItemReader: @unchecked Sendable {
  // Sendable: used only in turns of its task loop, and there is one turn at a time.
  private unowned let session: ItemSession
  let kind: TrackKind
  private var reader: LandingReader?
  var job: ReadingJob?
  /// The iteration that is being read, and whether its end has been reached.
  private var iteration = 0
  private var hasEnded = false
  private var dropsAudio = false
  /// True once the item has a packet of video.
  private var hasStarted = false

  init(_ session: ItemSession, kind: TrackKind) {
    self.session = session
    self.kind = kind
  }

  /// The next step of a reader.
  private enum Step {
    case begin(ReadingJob, OpenSource)
    /// Reads the next packet.
    case read(dropsAudio: Bool)
    case beginIteration(LoopIteration)
    /// Looks for newer segments, so that the player can jump to a time.
    case look(LiveSegments, for: MediaTime)
    case rest
  }

  func turn() -> TaskLoop.Next {
    do {
      var step = next()
      while true {
        switch step {
        case .begin(let job, let source):
          try begin(job, source)
          step = next()
        case .read(let dropsAudio): step = try readNext(dropsAudio: dropsAudio)
        case .beginIteration(let loop):
          if beginIteration(loop) {
            step = next()
            continue
          }
          rest()
          session.core.wake()
          return .idle
        case .look(let live, let time):
          if let job { try BlockingThread.wait(scope: job.scope) { try await live.update(for: time) } }
          session.core.wake()
          step = next()
        case .rest:
          rest()
          return .idle
        }
      }
    } catch is CancellationError {
      // After a seek or a stop, the next turn handles it. Otherwise, a transfer ended for another reason.
      return recover(from: ReelError(.network, "a transfer was cancelled", at: session.item.source.name))
    } catch {
      let unknown = ReelError(.internalFault, "\(error)", at: session.item.source.name)
      return recover(from: error as? ReelError ?? unknown)
    }
  }

  func recover(from error: ReelError) -> TaskLoop.Next {
    // The source is opened again.
    if session.read({ $0.storeUse.isMisled(by: error) }) ?? false || error.found == .otherVersion {
      reader = nil
    }
    let next = session.change { state, out -> TaskLoop.Next in
      guard !state.isOver(kind) else { return .idle }
      // The error is from a position that is no longer wanted.
      guard let job, state.readingJobs[kind] === job else { return .again }
      let place = state.packets.end(of: kind) ?? job.start
      guard let pause = state.readingFailed(kind, error, place: place, &out) else { return .idle }
      return pause == .zero ? .again : .at(session.core.clock.now + pause)
    }
    return next ?? .idle
  }

  // MARK: - Private

  private func next() -> Step {
    session.change { state, out in next(in: &state, &out) } ?? .rest
  }

  private func next(in state: inout ItemState, _ out: inout Effects) -> Step {
    guard state.wantsMore(of: kind), let source = state.source.opened, let job = state.readingJobs[kind]
    else { return .rest }
    if job !== self.job { return .begin(job, source) }
    if kind == .video, let live = state.live, let time = state.following.lookout.take() {
      return .look(live, for: time)
    }
    if hasEnded {
      if let loop = state.nextIteration(after: iteration, of: kind) { return .beginIteration(loop) }
    } else if state.packets.wantsMore(kind) {
      return .read(dropsAudio: kind == .video && !state.wantsAudio)
    }
    // The presenter may be waiting for audio that will not come.
    out.wake(.presenter)
    return .rest
  }

  /// Begins a job, with a new reader if there is none yet.
  private func begin(_ job: ReadingJob, _ source: OpenSource) throws {
    self.job = job
    iteration = job.loop.iteration
    hasEnded = false
    if let reader {
      if job.beginsAtEnd { return recordEnd(fault: nil) }
      try seek(reader, job)
    } else {
      let reader = makeReader(source, scope: job.scope)
      self.reader = reader
      if job.start != nil { try seek(reader, job) }
    }
  }

  private func seek(_ reader: LandingReader, _ job: ReadingJob) throws {
    // Before the first video, there is no key frame to land on.
    let videoStart = session.read { $0.soundBeforeVideo?.upperBound ?? .zero } ?? .zero
    let needsKeyFrame = kind == .video && job.start.map { $0 > job.loop.shift + videoStart } ?? false
    try timing(reader) {
      try reader.seek(to: job.start, needsKeyFrame: needsKeyFrame, loop: job.loop, scope: job.scope)
    }
  }

  private func makeReader(_ source: OpenSource, scope: LoadScope) -> LandingReader {
    var role = ReaderRole.main(wantsAudio: true)
    var controller = RungController(session.loading, clock: session.core.clock)
    switch source.source {
    case .resource:
      session.change { state, _ in state.hasSeparateAudio = false }
      session.item.beginAccess(AccessLogEntry())
    case .presentation(let resolved):
      switch kind {
      case .video:
        let playsSeparateAudio = resolved.presentation.playsSeparateAudio(session.loading)
        role = .main(wantsAudio: !playsSeparateAudio)
        controller = RungController(session.rungChoice) { [weak session] in
          session?.conditions ?? RungConditions()
        }
        session.change { state, _ in
          state.presentationOpened(resolved.presentation, playsSeparateAudio: playsSeparateAudio)
          state.controller = controller
        }
      case .audio:
        role = .audio(group: session.read { $0.audioGroup } ?? nil)
        var configuration = session.loading
        configuration.preferredPeakBitRate = AudioSelector.peakBitRate
        configuration.maximumHeight = nil
        controller = RungController(configuration, clock: session.core.clock)
      }
    }
    return LandingReader(
      source, for: role, controller: controller, offsets: session.offsets,
      log: { [weak session, kind] report in session?.take(report, of: kind) }, scope: scope)
  }

  private func readNext(dropsAudio: Bool) throws -> Step {
    guard let reader else { return .rest }
    if dropsAudio != self.dropsAudio {
      self.dropsAudio = dropsAudio
      reader.base.setDropsAudio(dropsAudio)
    }
    if kind == .audio { session.watchAudio() }
    guard let packet = try timing(reader, { try reader.next() }) else {
      recordEnd(fault: reader.base.endFault)
      return next()
    }
    return take(packet, of: reader.base.streams)
  }

  /// Puts a packet into the buffer, and returns the next step.
  private func take(_ packet: MediaPacket, of streams: ReaderStreams) -> Step {
    let now = session.core.clock.now
    return session.core.change { state, out in
      guard state.item.session === session else { return .rest }
      if let job, state.item.readingJobs[kind] === job {
        state.item.packetRead(packet, by: kind, of: streams, at: now, &out)
        if state.status != .playing { out.wake(.presenter) }
      }
      return next(in: &state.item, &out)
    }
  }

  /// Goes on with the next iteration after the end of one, or records that no packet follows.
  private func recordEnd(fault: ReelError?) {
    hasEnded = true
    if fault == nil {
      let loop = session.change { state, _ in
        state.readingJobs[kind] === job ? state.nextIteration(after: iteration, of: kind) : nil
      }
      if let loop = loop ?? nil, beginIteration(loop) { return }
    }
    session.change { state, out in
      if state.readingJobs[kind] === job { state.readingEnded(kind, fault: fault, &out) }
    }
  }

  /// Starts the next iteration. Returns false if it can't be read.
  ///
  /// This happens as soon as the end has been read, so that the first frame of the next iteration is decoded
  /// in time.
  private func beginIteration(_ loop: LoopIteration) -> Bool {
    guard let reader, let job else { return false }
    do {
      try reader.seek(to: nil, needsKeyFrame: false, loop: loop, scope: job.scope)
    } catch {
      return false
    }
    iteration = loop.iteration
    hasEnded = false
    session.change { state, out in
      guard state.readingJobs[kind] === job else { return }
      state.packets.resume(from: kind)
      // The reader of the audio may wait for the iteration's start.
      if kind == .video, state.hasSeparateAudio == true { out.wake(.audioReader) }
    }
    return true
  }

  /// Pauses reading for a while. A preloaded item returns the memory that it needs for reading to the system.
  private func rest() {
    guard session.read({ $0.target != nil }) == true, let reader else { return }
    if reader.base.rest() { session.core.account?.purge() }
  }

  /// Measures the time that a reader takes before the first packet.
  private func timing<Result>(_ reader: LandingReader, _ body: () throws -> Result) rethrows -> Result {
    if !hasStarted, let isStarted = session.read({ $0.hasVideoPacket }) { hasStarted = isStarted }
    if hasStarted { return try body() }
    return try reader.base.timed(by: session.core.clock, body) { wait, busy in
      session.change { state, _ in
        state.readerWait += wait
        state.readerBusy += busy
      }
    }
  }
}

/// Detects a separate audio stream that does not arrive.
extension ItemSession {
  /// Starts to check, while audio is being loaded, whether playback waits for it without result.
  func watchAudio() {
    let (now, patience) = (core.clock.now, core.configuration.thresholds.audioPatience)
    change { state, _ in
      guard state.audioWatch == nil else { return }
      state.audioAbsence.end(at: now)
      lookAtAudio(at: state.audioAbsence.nextLook(after: now, patience: patience), &state)
    }
  }

  private func lookAtAudio(at deadline: Duration, _ state: inout ItemState) {
    let runtime = core.configuration.runtime
    state.audioWatch = core.clock.schedule(at: deadline) { [weak self] in
      // Runs on the same executor as the loading tasks, so it has the same delays.
      runtime.task { [weak self] in self?.lookAtAudio(due: deadline) }
    }
  }

  private func lookAtAudio(due: Duration) {
    let patience = core.configuration.thresholds.audioPatience
    let now = core.clock.now
    change { state, out in
      state.audioWatch = nil
      state.audioAbsence.count(to: due, now: now)
      // Watching restarts with the next turn of its reader.
      guard !state.isOver(.audio), state.failure == nil, state.packets.isLoadingAudio else { return }
      let absence = state.audioAbsence
      // Audio that was loaded earlier may last for a while.
      let isAbsent = state.packets.position.map { state.absentKinds(at: $0).contains(.audio) } ?? false
      guard absence.length >= patience, state.packets.isHeldUpByAudio, !isAbsent else {
        return lookAtAudio(at: absence.nextLook(after: now, patience: patience), &state)
      }
      let seconds = Int((now - absence.since) / .seconds(1))
      let error = ReelError(
        .timedOut, "no audio has arrived for \(seconds) s: playback continues without it",
        at: item.source.name)
      state.giveUpAudio(after: error, &out)
    }
  }
}
