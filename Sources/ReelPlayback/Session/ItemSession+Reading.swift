internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// The turns of the readers' pumps: packets from the source into the forward buffer.
extension ItemSession {
  /// What a reader's pump keeps from turn to turn.
  final class Reading: @unchecked Sendable {
    // Sendable: touched in its pump's turns only, of which there is one at a time.
    let kind: MediaPacket.Kind
    var reader: LandingReader?
    var epoch = 0
    var scope: LoadScope?
    var hasEnded = false
    var iteration = 0
    var isNew = true
    var dropsAudio = false
    /// Where it was sent last, on the player's timeline; nil for the beginning.
    var target: MediaTime?
    init(kind: MediaPacket.Kind) { self.kind = kind }
  }

  func read(_ reading: Reading) -> Pump.Next {
    do {
      while true {
        guard wantsMore(of: reading), let reader = try takeUp(reading) else {
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
      // Sought or stopped: the next turn knows. Else somebody else has ended a transfer.
      let (isStopped, isSought) = state.withLock { state in
        // Its sound may have been given up.
        let isOver = state.isStopped || reading.kind == .audio && !state.wantsAudio
        return (isOver, state.pendingSeek[reading.kind] != nil)
      }
      if isStopped { return .idle }
      if isSought { return .again }
      return recover(from: ReelError(.network, "a transfer was cancelled", at: item.source.name), reading)
    } catch {
      let unknown = ReelError(.internalFault, "\(error)", at: item.source.name)
      return recover(from: error as? ReelError ?? unknown, reading)
    }
  }

  /// Nothing is read for a while: what an item that is preloaded needs for reading goes back to the system.
  func rest(_ reading: Reading) {
    guard state.withLock({ $0.target != nil }), let reader = reading.reader else { return }
    if reader.base.rest() { environment.account?.purge() }
  }

  /// True where the target of preloading has not been reached.
  func wantsMore(of reading: Reading) -> Bool {
    state.withLock { state in
      guard let target = state.target else { return true }
      // Sound that is a stream of its own comes after the first picture.
      guard reading.kind == .video else { return target.stage >= .buffered }
      switch target.stage {
      case .none, .manifest: return false
      case .initialization: return !state.hasVideoPacket
      case .firstFrame: return !state.hasRecordedStartup
      case .buffered: return true
      }
    }
  }

  /// Accounts for the time that a reader takes on the way to the first packet, before anybody has that.
  func timing<Result>(_ reader: any PacketReader, _ body: () throws -> Result) rethrows -> Result {
    guard !state.withLock({ $0.hasVideoPacket }) else { return try body() }
    let (start, before) = (environment.clock.now, reader.waits)
    defer {
      let (duration, after) = (environment.clock.now - start, reader.waits)
      let media = after.media - before.media
      state.withLock { state in
        state.readerWait += media
        state.readerBusy += max(.zero, duration - media - (after.manifests - before.manifests))
      }
    }
    return try body()
  }

  /// The reader, made where there is none, and gone to where it was sent; nil where there is nothing to read.
  func takeUp(_ reading: Reading) throws -> LandingReader? {
    let (source, context, resolver, seek, scope, isWanted) = state.withLock { state in
      let isWanted =
        !state.isStopped && state.failure == nil
        && (reading.kind == .video || state.wantsAudio && state.hasSeparateAudio == true)
      // A seek that has come too early waits for the source.
      let seek = state.source == nil || !isWanted ? nil : state.pendingSeek.removeValue(forKey: reading.kind)
      return (state.source, state.context, state.resolver, seek, state.scopes[reading.kind], isWanted)
    }
    guard isWanted, let source, let context, let resolver, let scope else { return nil }
    let reader: LandingReader
    if let made = reading.reader {
      reader = made
    } else {
      reader = LandingReader(
        makeReader(reading.kind, source, context, resolver, scope: scope), scope: scope)
      reading.reader = reader
      reading.scope = scope
    }
    if let seek {
      reading.epoch = seek.epoch
      try go(to: seek.time, reader, reading, scope: scope)
    } else if reading.isNew {
      reading.epoch = buffer.loadEpoch(of: reading.kind)
    }
    reading.isNew = false
    let drops = reading.kind == .video && !state.withLock { $0.wantsAudio }
    if drops != reading.dropsAudio {
      reading.dropsAudio = drops
      reader.base.setDropsAudio(drops)
    }
    return reader
  }

  /// - Parameter time: on the player's timeline.
  func go(
    to time: MediaTime?, _ reader: LandingReader, _ reading: Reading, scope: LoadScope
  ) throws {
    let pass = state.withLock { state in
      let iteration = time.flatMap { time in state.shifts.lastIndex { $0 <= time } } ?? 0
      return state.beginPass(iteration, of: reading.kind)
    }
    reading.scope = scope
    reading.target = time
    reading.hasEnded = false
    reading.iteration = pass.iteration
    // Before the first video, there is no key frame to land on.
    let videoStart = state.withLock { $0.soundBeforeVideo }?.upperBound ?? .zero
    let needsKeyFrame = reading.kind == .video && time.map { $0 > pass.shift + videoStart } ?? false
    try timing(reader.base) {
      try reader.seek(to: time, needsKeyFrame: needsKeyFrame, pass: pass, scope: scope)
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
      state.withLock { $0.hasSeparateAudio = false }
      item.beginAccess(AccessLogEntry())
    case .presentation(let resolved):
      switch kind {
      case .video:
        let separate = resolved.presentation.periods.contains(where: \.hasAudio)
        let sound = resolved.presentation.soundBeforeVideo
        state.withLock { state in
          state.hasSeparateAudio = separate
          state.soundBeforeVideo = sound
          if !resolved.presentation.isLive {
            state.videoAbsences = resolved.presentation.absences(of: .main(wantsAudio: false))
          }
        }
        if let sound { buffer.begin(at: sound.lowerBound) }
        buffer.setHasSeparateAudio(separate && state.withLock { $0.wantsAudio })
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
      for: role, resolver: resolver, context: context, controller: controller, domains: domains,
      log: SessionLog(session: self, isVideo: kind == .video), scope: scope)
  }

  /// Of several bit rates of a rendition, the highest up to this.
  static var audioBitRateCap: Int { 192_000 }

  func makeAdaptation() -> any RungAdaptation {
    guard environment.isAdaptive else { return FixedRung() }
    var options = AdaptiveRungs.Options()
    options.initialEstimate = environment.initialBandwidth.map { Int($0) }
    return AdaptiveRungs(options: options)
  }

  var conditions: RungConditions {
    let preferences = item.preferences
    let level = buffer.level
    var conditions = RungConditions()
    conditions.now = environment.clock.now
    conditions.buffered = .seconds(level.ahead.seconds)
    conditions.bufferTarget = preferences.forwardBufferDuration
    conditions.bandwidthCap =
      preferences.peakBitRate ?? (environment.isAdaptive ? nil : environment.loading.bandwidthCap)
    conditions.maximumHeight = preferences.maximumResolution?.height
    state.withLock { state in
      conditions.rate = state.rate.isFinite ? state.rate : 1
      conditions.isRebuffering = state.isRebuffering
    }
    return conditions
  }

  /// What was read beyond the last time through the item has been let go.
  func endAfterLastIteration(_ reading: Reading) {
    let isBeyond = state.withLock { state in
      guard let cut = state.cut, let pass = state.passes[reading.kind], pass.serial < cut.serial,
        pass.iteration > cut.iteration
      else { return false }
      reading.iteration = cut.iteration
      state.passes[reading.kind] = ItemPass(
        iteration: cut.iteration, shift: state.shifts[cut.iteration], serial: cut.serial)
      return true
    }
    guard isBeyond else { return }
    reading.hasEnded = true
    if !goesRound(reading) { tellEnd(reading) }
  }

  /// True where the item is to be begun anew after its end.
  func goesRound(_ reading: Reading) -> Bool {
    let pass = state.withLock { state -> ItemPass? in
      guard state.loops else { return nil }
      let next = reading.iteration + 1
      if next < state.shifts.count { return state.beginPass(next, of: reading.kind) }
      guard reading.kind == .video, next == state.shifts.count, let end = buffer.end(of: .video),
        end > state.shifts[reading.iteration]
      else { return nil }
      // Sound that is longer is heard to its end, with the last picture. Of one that is a stream of its own no more
      // counts than was loaded by then: it is not known how much is to come.
      let sound = state.wantsAudio ? buffer.end(of: .audio) : nil
      state.shifts.append(max(end, sound ?? end))
      return state.beginPass(next, of: reading.kind)
    }
    guard let pass, let reader = reading.reader, let scope = reading.scope else { return false }
    do {
      try reader.seek(to: nil, needsKeyFrame: false, pass: pass, scope: scope)
    } catch {
      return false
    }
    reading.iteration = pass.iteration
    reading.hasEnded = false
    buffer.goOn(from: reading.kind, epoch: reading.epoch)
    return true
  }

  func take(_ unit: ReadUnit, from reader: any PacketReader, _ reading: Reading) {
    switch unit {
    case .packet(let packet, let kind):
      noteStreams(reader, reading.kind)
      // What is read once more, to get to where it failed, is no progress.
      let isNews = buffer.end(of: kind).map { packet.end > $0 } ?? true
      guard buffer.append(packet, kind, from: reading.kind, epoch: reading.epoch) else { return }
      if reading.kind == .audio {
        let now = environment.clock.now
        state.withLock { $0.audioAbsence.end(at: now) }
      }
      noteProgress(isVideo: kind == .video, isNews: isNews)
      pumps.wake(kind == .video ? .video : .audio)
      if !state.withLock({ $0.isPlaying }) { delegate.wake() }
    case .end:
      reading.hasEnded = true
      if let fault = reader.endFault {
        noteFailure(fault, rung: "")
        state.withLock { $0.failure = $0.failure ?? fault }
      } else if goesRound(reading) {
        if hasSeparateAudio { pumps.wake(.audioReader) }
        return
      }
      tellEnd(reading)
    }
  }

  func tellEnd(_ reading: Reading) {
    var kinds: Set<MediaPacket.Kind> = [reading.kind]
    if reading.kind == .video, !hasSeparateAudio { kinds.insert(.audio) }
    buffer.end(kinds, from: reading.kind, epoch: reading.epoch)
    state.withLock { _ = $0.hasReadEnd.insert(reading.kind) }
    noteTracksKnown()
    pumps.wake(.video)
    pumps.wake(.audio)
    delegate.wake()
  }

  /// A kind of media may be absent for a long time. Without video, audio begins by itself.
  func noteAbsence(_ segments: LiveSegments, of kind: MediaPacket.Kind) {
    state.withLock { state in
      if kind == .video { state.live = segments } else { state.liveAudio = segments }
    }
    if kind == .video { pumps.wake(.audioReader) }
    delegate.wake()
  }

  func noteProgress(isVideo: Bool, isNews: Bool) {
    let (isFirst, hadRetries, attempts, beginsAudio) = state.withLock { state in
      let isFirst = isVideo && !state.hasVideoPacket
      if isVideo { state.hasVideoPacket = true }
      let hadRetries = isNews && state.retry.remaining < state.retry.attempts
      if hadRetries { state.retry.succeed() }
      return (isFirst, hadRetries, state.retry.remaining, isFirst && state.hasSeparateAudio == true)
    }
    if isFirst { reach(.initialization) }
    if hadRetries { item.remainingRetries.set(attempts) }
    // The first picture goes before the sound.
    if beginsAudio { pumps.wake(.audioReader) }
  }

  func noteStreams(_ reader: any PacketReader, _ kind: MediaPacket.Kind) {
    let streams = reader.streams
    let live = (reader as? SegmentedPacketReader)?.opened?.supply as? LiveSegments
    let isChanged = state.withLock { state -> Bool in
      let tracks = streams.tracks(of: kind)
      switch kind {
      case .video:
        state.streams = streams
        state.audioGroup = streams.rung?.audioGroup ?? state.audioGroup
        if let live { state.live = live }
        guard tracks != state.videoTracks else { return false }
        state.videoTracks = tracks
      case .audio:
        if let live { state.liveAudio = live }
        guard tracks != state.audioTracks else { return false }
        state.audioTracks = tracks
      }
      // Set under the lock: if both readers report at the same time, the later report includes the earlier one.
      item.tracks.set(state.videoTracks + state.audioTracks)
      return true
    }
    guard isChanged else { return noteTracksKnown() }
    noteTracksKnown()
    if kind == .video { item.duration.set(streams.live == nil ? streams.duration : nil) }
  }

  /// Publishes that all tracks are known, if they are.
  func noteTracksKnown() {
    guard !item.areTracksKnown.value else { return }
    if state.withLock({ $0.areTracksKnown }) { item.areTracksKnown.set(true) }
  }

  func recover(from error: ReelError, _ reading: Reading) -> Pump.Next {
    // Of a place that is not wanted any more.
    if state.withLock({ $0.pendingSeek[reading.kind] != nil }) { return .again }
    noteFailure(error, rung: "")
    if let delay = nextRetry(after: error) {
      // It goes on where it was, from a container that is opened anew.
      state.withLock { state in
        if state.pendingSeek[reading.kind] == nil {
          state.pendingSeek[reading.kind] = (reading.epoch, buffer.end(of: reading.kind) ?? reading.target)
        }
      }
      return .at(environment.clock.now + delay)
    }
    guard reading.kind == .video else {
      playWithoutAudio(epoch: reading.epoch)
      return .idle
    }
    let isFinal = state.withLock { state in
      guard state.pendingSeek[reading.kind] == nil else { return false }
      state.failure = error
      return true
    }
    guard isFinal else { return .again }
    // What is there is shown first.
    buffer.end([.video, .audio], from: .video, epoch: reading.epoch, isBroken: true)
    pumps.wake(.video)
    pumps.wake(.audio)
    delegate.wake()
    return .idle
  }
}

extension ReaderStreams {
  /// What they are for who plays them.
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
