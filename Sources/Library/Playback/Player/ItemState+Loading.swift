internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
internal import ReelReading
internal import ReelSources

/// How an item is loaded and decoded: the events of its resolver, its readers and its decoders.
///
/// - Loading begins as soon as there is a target, or playback. Temporary failures are retried according to
///   the policy. Others are final at once, except that an item with packets has reached its servers before,
///   so a failure to reach them again may be temporary.
/// - The video loader comes first. Separate audio is loaded after the first video packet, and left out if it
///   fails.
/// - A seek moves the loaders. Errors from the previous position are ignored.
/// - A final failure ends loading. It is reported when the loaded media has been shown.
extension ItemState {
  typealias Loader = TrackKind

  // MARK: The source

  /// Begins to load, if anything is wanted.
  mutating func begin(_ out: inout Effects) {
    guard source.isUnbegun, target.map({ $0.stage >= .manifest }) ?? true else { return }
    source = .resolving
    out.resolve(after: .zero)
  }

  mutating func sourceOpened(_ opened: OpenSource, _ out: inout Effects) {
    source = .open(opened)
    reach(.manifest, &out)
    out.wake(.reader)
  }

  mutating func sourceFailed(_ error: ReelError, _ out: inout Effects) {
    if reopens(after: error, &out) { return }
    if let pause = tryAgain(after: error, &out) { return out.resolve(after: pause) }
    log(error, .failed)
    health = .failing(error)
    out.wake(.presenter)
  }

  // MARK: The program

  /// Sets how far to load; nil for playing. If the target is below the current stage, releases everything
  /// that can be restored: frames after the one on show, and the decoder.
  mutating func setTarget(_ target: PreloadTarget?, _ out: inout Effects) {
    if let session { packets.limits = session.limits(for: target) }
    guard self.target != target else { return }
    self.target = target
    begin(&out)
    packets.fill()
    out.wake(.loading)
  }

  /// If the item no longer loops, the current iteration is the last one.
  mutating func setLoops(_ loops: Bool, _ out: inout Effects) {
    out.wake(.loading)
    guard let cut = iterations.setLoops(loops, iteration: onShow.span?.loop.iteration ?? 0) else { return }
    // The kinds of which no packet follows.
    var ended = cut.ahead
    if cut.ahead.contains(.video), hasSeparateAudio != true { ended.insert(.audio) }
    audio.drop(after: cut.loop.shift)
    packets.drop(after: cut.loop.iteration, ending: ended)
    frames.drop(after: cut.loop.iteration)
    // What loaders ahead have under way is of iterations that are not wanted.
    for loader in Loader.allCases where cut.ahead.contains(loader) {
      guard let job = readingJobs[loader] else { continue }
      readingJobs[loader] = ReadingJob(loop: cut.loop, beginsAtEnd: true, scope: job.scope)
    }
  }

  mutating func setWantsAudio(_ wants: Bool, _ out: inout Effects) {
    guard wantsAudio != wants else { return }
    wantsAudio = wants
    let position = packets.position
    packets.dropAudio(isSeparate: hasSeparateAudio ?? false)
    moveAudioDecoder(to: position)
    restart(.audio, at: position, &out)
    reportTracks()
    packets.setAudioLoader(audioLoader)
    out.wake(.loading)
  }

  /// Seeks to `time`, but not beyond the current iteration, and returns the position.
  mutating func seek(to time: MediaTime, tolerance: MediaTime, _ out: inout Effects) -> MediaTime {
    let time = iterations.place(
      of: time, iteration: onShow.span?.loop.iteration ?? 0, instant: Self.instant)
    // After a temporary failure, loading starts over, even for a buffered position.
    if failure?.isTemporary == true { packets.reset(position: nil) }
    let reload = packets.seek(to: time)
    moveDecoders(to: DecodingJob(target: time, tolerance: tolerance))
    // A buffer that fills up again is reported again.
    filledLimits = nil
    for loader in Loader.allCases where reload.contains(loader) { restart(loader, at: time, &out) }
    if let failure, failure.isTemporary || !reload.isEmpty {
      health = .sound
      restoreRetries()
      if source.opened == nil { out.resolve(after: .zero) }
    }
    out.wake(.loading)
    return time
  }

  // MARK: Readers

  /// Returns true if the packets of a loader are no longer wanted.
  func isOver(_ loader: Loader) -> Bool { loader == .audio && !wantsAudio }

  var playsSeparateAudio: Bool { wantsAudio && hasSeparateAudio == true }

  /// The loader that delivers the audio that is wanted; nil if there is none, or none is known so far.
  private var audioLoader: Loader? {
    guard wantsAudio else { return nil }
    return hasSeparateAudio == true ? .audio : streams.audio.map { _ in .video }
  }

  /// Returns false if a loader has nothing to do: its source is not known, it is not needed, or the target of
  /// preloading has been reached.
  func wantsMore(of loader: Loader) -> Bool {
    guard source.opened != nil, failure == nil, loader == .video || playsSeparateAudio else { return false }
    guard let target else { return true }
    // Separate audio comes after the first frame.
    guard loader == .video else { return target.stage >= .buffered }
    switch target.stage {
    case .notLoaded, .onDisk, .manifest: return false
    case .initialization: return !hasVideoPacket
    case .firstFrame: return onShow.time == nil
    case .buffered: return true
    }
  }

  /// The streams of the source are known.
  mutating func presentationOpened(_ presentation: Presentation, playsSeparateAudio: Bool) {
    hasSeparateAudio = playsSeparateAudio
    soundBeforeVideo = presentation.soundBeforeVideo
    if !presentation.isLive { videoAbsences = presentation.absences(of: .main(wantsAudio: false)) }
    if let soundBeforeVideo { packets.begin(at: soundBeforeVideo.lowerBound) }
    packets.setAudioLoader(audioLoader)
  }

  /// A loader has read a packet, and knows the streams.
  mutating func packetRead(
    _ packet: MediaPacket, by loader: Loader, of streams: ReaderStreams, at now: Duration,
    _ out: inout Effects
  ) {
    let hasBegun = self.streams.beginning != nil
    record(streams, of: loader)
    packets.setAudioLoader(audioLoader)
    if loader == .video, !hasBegun, let beginning = streams.beginning { begin(at: beginning, &out) }
    // Packets that are read again on the way back to a failure are not progress.
    let isNews = packets.end(of: packet.kind).map { packet.end > $0 } ?? true
    if loader == .audio, isNews { audioAbsence.end(at: now) }
    packets.append(packet)
    recordOverflow()
    if packet.kind == .video, !hasVideoPacket {
      hasVideoPacket = true
      if let start = streams.beginning?.time ?? readingJobs[.video]?.start { keepLiveDistance(of: start) }
      reach(.initialization, &out)
      // The first frame comes before the audio.
      if hasSeparateAudio == true { out.wake(.audioReader) }
    }
    if isNews, retry.remaining < retry.attempts { restoreRetries() }
    if packet.kind == .video || isAudioDue { out.wake(.decoder) }
  }

  /// The first packet is from where the playlist lets playback begin.
  private mutating func begin(at beginning: StartOffset, _ out: inout Effects) {
    clock = Timebase(time: beginning.time)
    packets.reset(position: beginning.time)
    if beginning.isPrecise {
      moveDecoders(to: DecodingJob(target: beginning.time + Self.instant))
    } else {
      moveAudioDecoder(to: beginning.time)
    }
    restart(.audio, at: beginning.time, &out)
  }

  /// Lets a live item stay at the distance of `time` from the edge, if that is more than the manifest's.
  mutating func keepLiveDistance(of time: MediaTime) {
    guard let distances = liveDistances(from: time) else { return }
    following.target = max(distances.latency, distances.target)
  }

  /// A loader has reached the end of the item.
  mutating func readingEnded(_ loader: Loader, fault: ReelError?, _ out: inout Effects) {
    tracks.hasReadEnd.insert(loader)
    if let fault {
      if loader == .audio { return giveUpAudio(after: fault, &out) }
      log(fault, .failed)
      if failure == nil { health = .failing(fault) }
    }
    packets.end(loader == .video && hasSeparateAudio != true ? [.video, .audio] : [loader])
    recordOverflow()
    reportTracks()
    out.wake([.decoder, .presenter])
  }

  /// A loader failed at `place`. Returns the pause after which it goes on there, with a container that is opened
  /// again; nil if it does not.
  mutating func readingFailed(
    _ loader: Loader, _ failure: ReelError, place: MediaTime?, _ out: inout Effects
  ) -> Duration? {
    var error = failure
    if hasVideoPacket, error.kind == .network { error.isTemporary = true }
    if let pause = reopens(after: error, &out) ? .zero : tryAgain(after: error, &out) {
      // What it has loaded is kept.
      if let scope = readingJobs[loader]?.scope {
        readingJobs[loader] = makeJob(loader, at: place, scope: scope)
      }
      return pause
    }
    guard loader == .video else {
      giveUpAudio(after: error, &out)
      return nil
    }
    log(error, .failed)
    health = .failing(error)
    // Show the loaded media first.
    packets.end([.video, .audio], isBroken: true)
    out.wake([.decoder, .presenter])
    return nil
  }

  /// Plays on without separate audio.
  mutating func giveUpAudio(after error: ReelError, _ out: inout Effects) {
    log(error, .lost(MediaLoss(kind: .audio, reason: .missing, range: nil)))
    wantsAudio = false
    restart(.audio, at: nil, &out)
    reportTracks()
    packets.setAudioLoader(nil)
    packets.end([.audio])
    out.wake([.decoder, .presenter])
  }

  /// Returns the iteration that a loader begins after it has read one to its end; nil if there is none.
  mutating func nextIteration(after iteration: Int, of loader: Loader) -> LoopIteration? {
    iterations.next(
      after: iteration, of: loader, videoEnd: packets.end(of: .video),
      audioEnd: wantsAudio ? packets.end(of: .audio) : nil)
  }

  /// Wakes the readers that have stopped at a full buffer and have room again.
  mutating func refill(_ out: inout Effects) {
    if packets.takeRefill(.video) { out.wake(.reader) }
    if packets.takeRefill(.audio) { out.wake(.audioReader) }
  }

  // MARK: Decoders

  /// The work of the video decoder.
  var decodingOrder: VideoPipeline.Order {
    VideoPipeline.Order(
      job: videoJob, limit: target?.frameLimit, prefersThroughput: prefersThroughput,
      lastIteration: iterations.last)
  }

  mutating func decodingFailed(_ error: ReelError, _ out: inout Effects) {
    log(error, .failed)
    health = .failing(error)
    out.wake(.presenter)
  }

  /// No frame could be decoded from packets of a span.
  ///
  /// - Parameter range: On the player's timeline.
  func framesLost(in range: Range<MediaTime>, of span: StreamSpan) {
    let range = range.lowerBound - span.shift..<range.upperBound - span.shift
    // The segment may be known to be damaged.
    if playerItem?.hasLostVideo(covering: range) == true { return }
    mediaUndecodable(.video, in: range, rung: span.rung)
  }

  /// Media was loaded, but can't be decoded.
  func mediaUndecodable(_ kind: TrackKind, in range: Range<MediaTime>, rung: Rung?) {
    let what = kind == .video ? "no frame" : "no audio"
    log(
      ReelError(.badMedia, "\(what) can be decoded \(range.words)", at: playerItem?.source.name),
      rung: rung?.id ?? "", .lost(MediaLoss(kind: kind, reason: .damaged, range: range)))
  }

  /// A span ended without any frame.
  mutating func spanWasFruitless(_ error: ReelError) {
    fruitlessFailure = fruitlessFailure ?? error
    log(error, .lost(MediaLoss(kind: .video, reason: .damaged, range: nil)))
  }

  /// Ends the frames of a job: none follows the last one.
  mutating func finishFrames(of job: DecodingJob, _ out: inout Effects) {
    guard videoJob === job else { return }
    frames.finish()
    if frames.isEmpty { out.wake(.presenter) }
  }

  /// Ends the jobs of both decoders, and drops what they have decoded.
  mutating func moveDecoders(to job: DecodingJob) {
    videoJob.end()
    videoJob = job
    frames.flush()
    moveAudioDecoder(to: job.target)
  }

  /// Ends the job of the audio decoder. Flush and new job are one change, so that no audio of the old one comes
  /// in between.
  mutating func moveAudioDecoder(to time: MediaTime?) {
    audioJob.end()
    audioJob = DecodingJob(target: time)
    audio.flush(start: time)
  }

  // MARK: - Private

  /// Interrupts a loader, which begins again at a time on the player's timeline; nil for the beginning.
  private mutating func restart(_ loader: Loader, at time: MediaTime?, _ out: inout Effects) {
    guard let session, let old = readingJobs[loader]?.scope else { return }
    out.cancel(old)
    readingJobs[loader] = makeJob(loader, at: time, scope: session.makeScope())
  }

  private mutating func makeJob(_ loader: Loader, at time: MediaTime?, scope: LoadScope) -> ReadingJob {
    ReadingJob(start: time, loop: iterations.begin(at: time, of: loader), scope: scope)
  }

  /// Opens the source again, past the store, if what is stored of it does not do. Returns false for other errors.
  private mutating func reopens(after error: ReelError, _ out: inout Effects) -> Bool {
    // Another loader has found it before.
    if storeUse.isBypassed, error.found == .otherVersion { return true }
    guard storeUse.isMisled(by: error) else { return false }
    storeUse = StoreUse(isBypassed: true)
    source = .resolving
    log(error, .retried)
    out.resolve(after: .zero)
    return true
  }

  /// Returns the pause before the next attempt, and reports it; nil if there is none.
  private mutating func tryAgain(after error: ReelError, _ out: inout Effects) -> Duration? {
    guard let pause = retry.next(after: error) else { return nil }
    log(error, .retried)
    playerItem?.observed.remainingRetries.set(retry.remaining)
    out.tell(
      .retry(attempt: retry.attempts - retry.remaining, of: retry.attempts, after: pause, error),
      of: playerItem)
    return pause
  }

  private mutating func restoreRetries() {
    retry.succeed()
    playerItem?.observed.remainingRetries.set(retry.remaining)
  }

  private mutating func recordOverflow() {
    guard let range = packets.takeOverflow() else { return }
    let error = ReelError(
      .badMedia, "audio comes too long before its video to be kept: it is left out \(range.words)",
      at: playerItem?.source.name)
    log(error, .lost(MediaLoss(kind: .audio, reason: .missing, range: range)))
  }

  /// Records what a reader knows of its streams. Properties of the item are set in the change: if both readers
  /// report at the same time, the later report includes the earlier one.
  private mutating func record(_ streams: ReaderStreams, of loader: Loader) {
    switch loader {
    case .video:
      self.streams = streams
      audioGroup = streams.rung?.audioGroup ?? audioGroup
      live = streams.liveSegments ?? live
    case .audio:
      liveAudio = streams.liveSegments ?? liveAudio
    }
    if let all = tracks.record(streams, of: loader) {
      playerItem?.observed.tracks.set(all)
      if loader == .video { playerItem?.observed.duration.set(streams.live == nil ? streams.duration : nil) }
    }
    reportTracks()
  }

  /// Reports once that no more tracks will be announced.
  private mutating func reportTracks() {
    guard !tracks.areReported,
      tracks.areKnown(wantsAudio: wantsAudio, hasSeparateAudio: hasSeparateAudio == true)
    else { return }
    tracks.areReported = true
    playerItem?.observed.areTracksKnown.set(true)
  }
}

/// The tracks that the loaders of an item have announced.
struct KnownTracks {
  /// The loaders that have read to the end. They announce no more tracks.
  var hasReadEnd: Set<TrackKind> = []
  /// True once it was reported that all are known.
  var areReported = false
  private var tracks: [TrackKind: [PlayerItem.Track]] = [:]
  /// True if the first reader has announced all that it can have.
  private var areAllAnnounced = false

  /// Records the streams of a loader, and returns the tracks of all if its own have changed.
  mutating func record(_ streams: ReaderStreams, of loader: TrackKind) -> [PlayerItem.Track]? {
    if loader == .video { areAllAnnounced = streams.areAllKnown }
    let tracks = streams.tracks(of: loader)
    guard self.tracks[loader] ?? [] != tracks else { return nil }
    self.tracks[loader] = tracks
    return TrackKind.allCases.flatMap { self.tracks[$0] ?? [] }
  }

  /// Returns true if no more tracks will be announced.
  func areKnown(wantsAudio: Bool, hasSeparateAudio: Bool) -> Bool {
    guard let video = tracks[.video], !video.isEmpty else { return false }
    if !wantsAudio { return true }
    if hasSeparateAudio { return tracks[.audio]?.isEmpty == false || hasReadEnd.contains(.audio) }
    return areAllAnnounced || video.contains { $0.kind == .audio } || hasReadEnd.contains(.video)
  }
}

extension ReaderStreams {
  /// Returns the tracks that a reader delivers to the player.
  fileprivate func tracks(of kind: TrackKind) -> [PlayerItem.Track] {
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
