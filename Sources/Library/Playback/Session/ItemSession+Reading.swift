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
    var bufferGeneration = 0
    var scope: LoadScope?
    var hasEnded = false
    var iteration = 0
    var isNew = true
    var dropsAudio = false
    /// The position of the last seek on the player's timeline; nil for the beginning.
    var target: MediaTime?

    init(kind: MediaPacket.Kind) { self.kind = kind }
  }

  func read(_ reading: Reading) -> TaskLoop.Next {
    do {
      while true {
        guard state.withLock({ $0.machine.wantsMore(of: reading.kind) }), let reader = try adopt(reading)
        else {
          rest(reading)
          return .idle
        }
        endAfterLastIteration(reading)
        guard !reading.hasEnded || goesRound(reading), buffer.wantsMore(reading.kind) else {
          rest(reading)
          // The presenter may be waiting for audio that will not come.
          delegate.wake()
          return .idle
        }
        if reading.kind == .audio { watchAudio() }
        let unit = try timing(reader.base) { try reader.next() }
        take(unit, from: reader.base, reading)
      }
    } catch is CancellationError {
      // After a seek or a stop, the next turn handles it. Otherwise, a transfer ended for another reason.
      let (isOver, isSent) = state.withLock { state in
        (state.machine.isOver(reading.kind), state.machine.isSent(reading.kind))
      }
      if isOver { return .idle }
      if isSent { return .again }
      return recover(from: ReelError(.network, "a transfer was cancelled", at: item.source.name), reading)
    } catch {
      let unknown = ReelError(.internalFault, "\(error)", at: item.source.name)
      return recover(from: error as? ReelError ?? unknown, reading)
    }
  }

  /// Pauses reading for a while. A preloaded item returns the memory that it needs for reading to the system.
  func rest(_ reading: Reading) {
    guard state.withLock({ $0.machine.target != nil }), let reader = reading.reader else { return }
    if reader.base.rest() { environment.account?.purge() }
  }

  /// Measures the time that a reader takes before the first packet.
  func timing<Result>(_ reader: any PacketReader, _ body: () throws -> Result) rethrows -> Result {
    guard !state.withLock({ $0.machine.hasVideoPacket }) else { return try body() }
    return try reader.timed(by: environment.clock, body) { wait, busy in
      state.withLock { state in
        state.readerWait += wait
        state.readerBusy += busy
      }
    }
  }

  /// Returns the reader, created if necessary and moved to the position of the last seek; nil if there is
  /// nothing to read.
  func adopt(_ reading: Reading) throws -> LandingReader? {
    let (source, context, resolver, scope, assignment) = state.withLock { state in
      (
        state.source, state.context, state.resolver, state.scopes[reading.kind],
        state.machine.assignment(of: reading.kind)
      )
    }
    guard let assignment, let source, let context, let resolver, let scope else { return nil }
    let reader: LandingReader
    if let made = reading.reader {
      reader = made
    } else {
      reader = LandingReader(
        makeReader(reading.kind, source, context, resolver, scope: scope), scope: scope)
      reading.reader = reader
      reading.scope = scope
    }
    if let seek = assignment.seek {
      reading.bufferGeneration = seek.bufferGeneration
      try go(to: seek.time, reader, reading, scope: scope)
    } else if reading.isNew {
      reading.bufferGeneration = buffer.loadGeneration(of: reading.kind)
    }
    reading.isNew = false
    if assignment.dropsAudio != reading.dropsAudio {
      reading.dropsAudio = assignment.dropsAudio
      reader.base.setDropsAudio(assignment.dropsAudio)
    }
    return reader
  }

  /// - Parameter time: The position on the player's timeline.
  func go(
    to time: MediaTime?, _ reader: LandingReader, _ reading: Reading, scope: LoadScope
  ) throws {
    let loop = state.withLock { $0.machine.iterations.begin(at: time, of: reading.kind) }
    reading.scope = scope
    reading.target = time
    reading.hasEnded = false
    reading.iteration = loop.iteration
    // Before the first video, there is no key frame to land on.
    let videoStart = state.withLock { $0.soundBeforeVideo }?.upperBound ?? .zero
    let needsKeyFrame = reading.kind == .video && time.map { $0 > loop.shift + videoStart } ?? false
    try timing(reader.base) {
      try reader.seek(to: time, needsKeyFrame: needsKeyFrame, loop: loop, scope: scope)
    }
  }

  func makeReader(
    _ kind: MediaPacket.Kind, _ source: ResolvedSource, _ context: TrackContext, _ resolver: SourceResolver,
    scope: LoadScope
  ) -> any PacketReader {
    var role = ReaderRole.main(wantsAudio: true)
    var controller = RungController(environment.loading, clock: environment.clock)
    switch source {
    case .resource:
      handle(.opened(hasSeparateAudio: false))
      item.beginAccess(AccessLogEntry())
    case .presentation(let resolved):
      switch kind {
      case .video:
        let separate = resolved.presentation.periods.contains(where: \.hasAudio)
        let sound = resolved.presentation.soundBeforeVideo
        handle(.opened(hasSeparateAudio: separate))
        state.withLock { state in
          state.soundBeforeVideo = sound
          if !resolved.presentation.isLive {
            state.videoAbsences = resolved.presentation.absences(of: .main(wantsAudio: false))
          }
        }
        if let sound { buffer.begin(at: sound.lowerBound) }
        buffer.setHasSeparateAudio(state.withLock { $0.machine.playsSeparateAudio })
        role = .main(wantsAudio: !separate)
        controller = RungController(adaptation: makeAdaptation()) { [weak self] in
          self?.conditions ?? RungConditions()
        }
        state.withLock { $0.controller = controller }
      case .audio:
        role = .audio(group: state.withLock { $0.audioGroup })
        var configuration = environment.loading
        configuration.bandwidthCap = Self.audioBitRateCap
        configuration.maximumHeight = nil
        controller = RungController(configuration, clock: environment.clock)
      }
    }
    return source.packetReader(
      for: role, resolver: resolver, context: context, controller: controller, offsets: offsets,
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
    let target = state.withLock { $0.machine.target }
    let level = buffer.level
    var conditions = RungConditions()
    conditions.now = environment.clock.now
    conditions.buffered = .seconds(level.ahead.seconds)
    conditions.bufferTarget = target == nil ? item.forwardBufferDuration : preferences.forwardBufferDuration
    let cap = preferences.peakBitRate ?? (environment.isAdaptive ? nil : environment.loading.bandwidthCap)
    let peak = target.map { $0.peakBitRate } ?? bounds.peakBitRate
    conditions.bandwidthCap = [cap, peak].compactMap(\.self).min()
    conditions.startCap = target.map { $0.startPeakBitRate } ?? bounds.startPeakBitRate
    conditions.maximumHeight = preferences.maximumResolution?.height
    state.withLock { state in
      conditions.rate = state.rate.isFinite ? state.rate : 1
      conditions.isRebuffering = state.isRebuffering
    }
    return conditions
  }

  /// Ends reading if it continued past the last iteration, whose later packets have been dropped.
  func endAfterLastIteration(_ reading: Reading) {
    guard let last = state.withLock({ $0.machine.iterations.returnFromCut(reading.kind) }) else { return }
    reading.iteration = last
    reading.hasEnded = true
    if !goesRound(reading) {
      handle(.ended(reading.kind, bufferGeneration: reading.bufferGeneration, fault: nil))
    }
  }

  /// Returns true if reading starts the next iteration.
  /// This happens as soon as the end has been read, so that the first frame of the next iteration is decoded
  /// in time.
  func goesRound(_ reading: Reading) -> Bool {
    let loop = state.withLock { state in
      state.machine.iterations.next(
        after: reading.iteration, of: reading.kind, videoEnd: buffer.end(of: .video),
        audioEnd: state.machine.wantsAudio ? buffer.end(of: .audio) : nil)
    }
    guard let loop, let reader = reading.reader, let scope = reading.scope else { return false }
    do {
      try reader.seek(to: nil, needsKeyFrame: false, loop: loop, scope: scope)
    } catch {
      return false
    }
    reading.iteration = loop.iteration
    reading.hasEnded = false
    buffer.resume(from: reading.kind, bufferGeneration: reading.bufferGeneration)
    return true
  }

  func take(_ unit: ReadUnit, from reader: any PacketReader, _ reading: Reading) {
    switch unit {
    case .packet(let packet, let kind):
      recordStreams(reader, reading.kind)
      // Packets that are read again on the way back to a failure are not progress.
      let isNews = buffer.end(of: kind).map { packet.end > $0 } ?? true
      guard buffer.append(packet, kind, from: reading.kind, bufferGeneration: reading.bufferGeneration) else {
        return
      }
      if reading.kind == .audio {
        let now = environment.clock.now
        state.withLock { $0.audioAbsence.end(at: now) }
      }
      handle(.packetRead(kind, isNews: isNews))
      taskLoops.wake(kind == .video ? .video : .audio)
      if !state.withLock({ $0.isPlaying }) { delegate.wake() }
    case .end:
      reading.hasEnded = true
      let fault = reader.endFault
      if fault == nil, goesRound(reading) {
        if hasSeparateAudio { taskLoops.wake(.audioReader) }
        return
      }
      handle(.ended(reading.kind, bufferGeneration: reading.bufferGeneration, fault: fault))
    }
  }

  /// Records that a kind of media may be missing for a long time. Without video, audio begins by itself.
  func recordAbsence(_ segments: LiveSegments, of kind: MediaPacket.Kind) {
    state.withLock { state in
      if kind == .video { state.live = segments } else { state.liveAudio = segments }
    }
    if kind == .video { taskLoops.wake(.audioReader) }
    delegate.wake()
  }

  func recordStreams(_ reader: any PacketReader, _ kind: MediaPacket.Kind) {
    let streams = reader.streams
    let live = streams.liveSegments
    let (isChanged, consequences) = state.withLock { state -> (Bool, Consequences) in
      switch kind {
      case .video:
        state.streams = streams
        state.audioGroup = streams.rung?.audioGroup ?? state.audioGroup
        if let live { state.live = live }
      case .audio:
        if let live { state.liveAudio = live }
      }
      let (tracks, actions) = state.machine.record(
        streams.tracks(of: kind), of: kind, areAll: streams.areAllKnown)
      // Set under the lock: if both readers report at the same time, the later report includes the earlier one.
      if let tracks { item.tracks.set(tracks) }
      return (tracks != nil, Consequences(actions: actions))
    }
    perform(consequences)
    if isChanged, kind == .video { item.duration.set(streams.live == nil ? streams.duration : nil) }
  }

  func recover(from error: ReelError, _ reading: Reading) -> TaskLoop.Next {
    let place = buffer.end(of: reading.kind) ?? reading.target
    return perform(
      state.withLock {
        $0.decide(.failed(reading.kind, error, bufferGeneration: reading.bufferGeneration, place: place))
      })
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
