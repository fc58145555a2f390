internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// The turns of the readers' task loops, which move packets from the source to the forward buffer.
extension ItemSession {
  /// The state that a reader's task loop keeps between turns.
  final class Reading: @unchecked Sendable {
    // Sendable: used only in turns of its task loop, and there is one turn at a time.
    let kind: MediaPacket.Kind
    var reader: LandingReader?
    var job: ReadingJob?
    /// The iteration that is being read, and whether its end has been reached.
    var iteration = 0
    var hasEnded = false
    var dropsAudio = false

    init(kind: MediaPacket.Kind) { self.kind = kind }
  }

  /// What a reader does next.
  private enum NextReading {
    case begin(ReadingJob, Opened)
    /// Reads the next packet.
    case read(dropsAudio: Bool)
    /// Begins the next iteration.
    case goRound(LoopIteration)
    case rest
  }

  /// What readers are made of, once the source is resolved.
  struct Opened: Sendable {
    let source: ResolvedSource
    let resolver: SourceResolver
    let context: TrackContext
  }

  func read(_ reading: Reading) -> TaskLoop.Next {
    do {
      while true {
        switch nextReading(reading) {
        case .begin(let job, let opened): try begin(job, opened, reading)
        case .read(let dropsAudio): try readNext(reading, dropsAudio: dropsAudio)
        case .goRound(let loop):
          if goRound(loop, reading) { continue }
          rest(reading)
          delegate.wake()
          return .idle
        case .rest:
          rest(reading)
          return .idle
        }
      }
    } catch is CancellationError {
      // After a seek or a stop, the next turn handles it. Otherwise, a transfer ended for another reason.
      return recover(from: ReelError(.network, "a transfer was cancelled", at: item.source.name), reading)
    } catch {
      let unknown = ReelError(.internalFault, "\(error)", at: item.source.name)
      return recover(from: error as? ReelError ?? unknown, reading)
    }
  }

  private func nextReading(_ reading: Reading) -> NextReading {
    let kind = reading.kind
    return change { state, out in
      guard state.machine.wantsMore(of: kind), let opened = state.opened, let job = state.readingJobs[kind]
      else { return .rest }
      if job !== reading.job { return .begin(job, opened) }
      if reading.hasEnded {
        if let loop = state.nextIteration(after: reading.iteration, of: kind) { return .goRound(loop) }
      } else if state.packets.wantsMore(kind) {
        return .read(dropsAudio: kind == .video && !state.machine.wantsAudio)
      }
      // The presenter may be waiting for audio that will not come.
      out.wake(.presenter)
      return .rest
    }
  }

  private func readNext(_ reading: Reading, dropsAudio: Bool) throws {
    guard let reader = reading.reader else { return }
    if dropsAudio != reading.dropsAudio {
      reading.dropsAudio = dropsAudio
      reader.base.setDropsAudio(dropsAudio)
    }
    if reading.kind == .audio { watchAudio() }
    let unit = try timing(reader.base) { try reader.next() }
    take(unit, from: reader.base, reading)
  }

  /// Pauses reading for a while. A preloaded item returns the memory that it needs for reading to the system.
  private func rest(_ reading: Reading) {
    guard state.read({ $0.machine.target != nil }), let reader = reading.reader else { return }
    if reader.base.rest() { environment.account?.purge() }
  }

  /// Measures the time that a reader takes before the first packet.
  func timing<Result>(_ reader: any PacketReader, _ body: () throws -> Result) rethrows -> Result {
    guard !state.read({ $0.machine.hasVideoPacket }) else { return try body() }
    return try reader.timed(by: environment.clock, body) { wait, busy in
      change { state, _ in
        state.readerWait += wait
        state.readerBusy += busy
      }
    }
  }

  /// Begins a job, with a new reader if there is none yet.
  private func begin(_ job: ReadingJob, _ opened: Opened, _ reading: Reading) throws {
    reading.job = job
    reading.iteration = job.loop.iteration
    reading.hasEnded = false
    if let reader = reading.reader {
      if job.beginsAtEnd { return noteEnd(reading, fault: nil) }
      try seek(reader, job, reading)
    } else {
      let reader = LandingReader(makeReader(reading.kind, opened, scope: job.scope), scope: job.scope)
      reading.reader = reader
      if job.start != nil { try seek(reader, job, reading) }
    }
  }

  private func seek(_ reader: LandingReader, _ job: ReadingJob, _ reading: Reading) throws {
    // Before the first video, there is no key frame to land on.
    let videoStart = state.read { $0.soundBeforeVideo }?.upperBound ?? .zero
    let needsKeyFrame = reading.kind == .video && job.start.map { $0 > job.loop.shift + videoStart } ?? false
    try timing(reader.base) {
      try reader.seek(to: job.start, needsKeyFrame: needsKeyFrame, loop: job.loop, scope: job.scope)
    }
  }

  private func makeReader(
    _ kind: MediaPacket.Kind, _ opened: Opened, scope: LoadScope
  ) -> any PacketReader {
    var role = ReaderRole.main(wantsAudio: true)
    var controller = RungController(environment.loading, clock: environment.clock)
    switch opened.source {
    case .resource:
      handle(.opened(hasSeparateAudio: false))
      item.beginAccess(AccessLogEntry())
    case .presentation(let resolved):
      switch kind {
      case .video:
        let separate = resolved.presentation.periods.contains(where: \.hasAudio)
        let sound = resolved.presentation.soundBeforeVideo
        change { state, out in
          state.decide(.opened(hasSeparateAudio: separate), &out)
          state.soundBeforeVideo = sound
          if !resolved.presentation.isLive {
            state.videoAbsences = resolved.presentation.absences(of: .main(wantsAudio: false))
          }
          if let sound { state.packets.begin(at: sound.lowerBound) }
          state.packets.setHasSeparateAudio(state.machine.playsSeparateAudio)
        }
        role = .main(wantsAudio: !separate)
        let adapting = RungController(adaptation: makeAdaptation()) { [weak self] in
          self?.conditions ?? RungConditions()
        }
        controller = adapting
        change { state, _ in state.controller = adapting }
      case .audio:
        role = .audio(group: state.read { $0.audioGroup })
        var configuration = environment.loading
        configuration.bandwidthCap = Self.audioBitRateCap
        configuration.maximumHeight = nil
        controller = RungController(configuration, clock: environment.clock)
      }
    }
    return opened.source.packetReader(
      for: role, resolver: opened.resolver, context: opened.context, controller: controller, offsets: offsets,
      log: SessionLog(session: self, isVideo: kind == .video), scope: scope)
  }

  /// The limit for the bit rate of an audio rendition.
  static var audioBitRateCap: Int { 192_000 }

  func makeAdaptation() -> any RungAdaptation {
    guard environment.isAdaptive else { return FixedRung() }
    var options = AdaptiveRungs.Options()
    options.initialEstimate = (item.initialBandwidth ?? environment.initialBandwidth).map { Int($0) }
    return AdaptiveRungs(options: options)
  }

  var conditions: RungConditions {
    let preferences = item.preferences
    let bounds = item.bounds
    let (target, level, rate, isRebuffering) = state.read {
      ($0.machine.target, $0.packets.level, $0.rate, $0.isRebuffering)
    }
    var conditions = RungConditions()
    conditions.now = environment.clock.now
    conditions.buffered = .seconds(level.ahead.seconds)
    conditions.bufferTarget = target == nil ? item.forwardBufferDuration : preferences.forwardBufferDuration
    let cap = preferences.peakBitRate ?? (environment.isAdaptive ? nil : environment.loading.bandwidthCap)
    let peak = target.map { $0.peakBitRate } ?? bounds.peakBitRate
    conditions.bandwidthCap = [cap, peak].compactMap(\.self).min()
    conditions.startCap = target.map { $0.startPeakBitRate } ?? bounds.startPeakBitRate
    conditions.maximumHeight = preferences.maximumResolution?.height
    conditions.rate = rate.isFinite ? rate : 1
    conditions.isRebuffering = isRebuffering
    return conditions
  }

  /// Starts the next iteration. Returns false if it can't be read.
  ///
  /// This happens as soon as the end has been read, so that the first frame of the next iteration is decoded
  /// in time.
  private func goRound(_ loop: LoopIteration, _ reading: Reading) -> Bool {
    guard let reader = reading.reader, let job = reading.job else { return false }
    do {
      try reader.seek(to: nil, needsKeyFrame: false, loop: loop, scope: job.scope)
    } catch {
      return false
    }
    reading.iteration = loop.iteration
    reading.hasEnded = false
    change { state, out in
      guard state.readingJobs[reading.kind] === job else { return }
      state.packets.resume(from: reading.kind)
      // The reader of the audio may wait for the iteration's start.
      if reading.kind == .video, state.machine.hasSeparateAudio == true { out.wake(.audioReader) }
    }
    return true
  }

  private func take(_ unit: ReadUnit, from reader: any PacketReader, _ reading: Reading) {
    switch unit {
    case .packet(let packet, let kind):
      let streams = reader.streams
      let live = streams.liveSegments
      let now = environment.clock.now
      change { state, out in
        guard state.readingJobs[reading.kind] === reading.job else { return }
        if reading.kind == .audio { state.audioAbsence.end(at: now) }
        state.record(streams, live, of: reading.kind, for: item, &out)
        // Packets that are read again on the way back to a failure are not progress.
        let isNews = state.packets.end(of: kind).map { packet.end > $0 } ?? true
        state.packets.append(packet, kind)
        state.decide(.packetRead(kind, isNews: isNews), &out)
        out.wake(kind == .video ? .video : .audio)
        if !state.isPlaying { out.wake(.presenter) }
      }
    case .end:
      noteEnd(reading, fault: reader.endFault)
    }
  }

  /// Goes on with the next iteration after the end of one, or records that no packet follows.
  private func noteEnd(_ reading: Reading, fault: ReelError?) {
    reading.hasEnded = true
    if fault == nil {
      let loop = change { state, _ in
        state.readingJobs[reading.kind] === reading.job
          ? state.nextIteration(after: reading.iteration, of: reading.kind) : nil
      }
      if let loop, goRound(loop, reading) { return }
    }
    change { state, out in
      guard state.readingJobs[reading.kind] === reading.job else { return }
      state.decide(.ended(reading.kind, fault: fault), &out)
    }
  }

  /// Records that a kind of media may be missing for a long time. Without video, audio begins by itself.
  func recordAbsence(_ segments: LiveSegments, of kind: MediaPacket.Kind) {
    change { state, out in
      if kind == .video { state.live = segments } else { state.liveAudio = segments }
      out.wake(kind == .video ? [.audioReader, .presenter] : .presenter)
    }
  }

  func recover(from error: ReelError, _ reading: Reading) -> TaskLoop.Next {
    change { state, out in
      guard !state.machine.isOver(reading.kind) else { return .idle }
      // The error is from a position that is no longer wanted.
      guard let job = reading.job, state.readingJobs[reading.kind] === job else { return .again }
      let place = state.packets.end(of: reading.kind) ?? job.start
      guard let pause = state.decide(.failed(reading.kind, error, place: place), &out) else { return .idle }
      return pause == .zero ? .again : .at(environment.clock.now + pause)
    }
  }
}

extension ItemSession.State {
  /// Returns the iteration that a loader begins after it has read one to its end; nil if there is none.
  fileprivate mutating func nextIteration(after iteration: Int, of kind: MediaPacket.Kind) -> LoopIteration? {
    machine.iterations.next(
      after: iteration, of: kind, videoEnd: packets.end(of: .video),
      audioEnd: machine.wantsAudio ? packets.end(of: .audio) : nil)
  }

  /// Records what a reader knows of its streams. Properties of the item are set under the lock: if both readers
  /// report at the same time, the later report includes the earlier one.
  fileprivate mutating func record(
    _ streams: ReaderStreams, _ live: LiveSegments?, of kind: MediaPacket.Kind, for item: PlayerItem,
    _ out: inout Effects
  ) {
    switch kind {
    case .video:
      self.streams = streams
      audioGroup = streams.rung?.audioGroup ?? audioGroup
      self.live = live ?? self.live
    case .audio:
      liveAudio = live ?? liveAudio
    }
    let (tracks, actions) = machine.record(streams.tracks(of: kind), of: kind, areAll: streams.areAllKnown)
    for action in actions { out.perform(action) }
    guard let tracks else { return }
    item.tracks.set(tracks)
    if kind == .video { item.duration.set(streams.live == nil ? streams.duration : nil) }
  }
}

extension ReaderStreams {
  /// Returns the tracks that a reader delivers to the player.
  func tracks(of kind: MediaPacket.Kind) -> [PlayerItem.Track] {
    var tracks: [PlayerItem.Track] = []
    if kind == .video, let video {
      tracks.append(
        PlayerItem.Track(
          kind: .video, codec: video.codecName, language: video.language, size: video.size ?? rung?.size,
          frameRate: video.averageFrameRate ?? rung?.frameRate))
    }
    if let audio {
      tracks.append(
        PlayerItem.Track(
          kind: .audio, codec: audio.codecName, language: audio.language, sampleRate: audio.sampleRate,
          channelCount: audio.channelCount))
    }
    return tracks
  }
}
