internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelManifest
internal import ReelModels
internal import ReelPlayback
internal import ReelReading
internal import ReelSimulation
internal import ReelSources

/// A look of a viewer that counts what it loads, without demuxing or decoding, and plays it by arithmetic.
///
/// ```
///  run ------> watch ----> open: the manifest, with retries
///   |            +-------> load: a task for video, and one for separate audio, from one position on
///   |                        | take: media as it arrives
///   v                        v
///  over <---- settle: playback begins, stalls, resumes, skips holes, follows a live edge, ends; a reader has room again
///               ^
///             timer
/// ```
///
/// It needs no thread: tasks load, and a call of the clock settles what happens although nothing arrives.
///
/// Not modelled: audio before the first video, and audio that is given up because it brings nothing for a while.
package final class Viewer: Sendable {
  private let look: ViewerLook
  private let source: MediaSource
  private let rules: LinkPlayback.Rules
  private let runtime: CountedRuntime
  private let scope: LoadScope
  private let over = TaskWait()
  private let state: Locked<State>

  /// The loading from one position on. A jump ends it and begins another one.
  private final class Job: Sendable {
    /// Nil for where playback begins by default.
    let start: MediaTime?
    let scope: LoadScope
    /// Waits for the jump that ends the job.
    let jump = TaskWait()
    /// Waits for the first frame, before which no audio is loaded.
    let firstFrame = TaskWait()

    init(start: MediaTime?, scope: LoadScope) { (self.start, self.scope) = (start, scope) }
  }

  /// The first frame of a job.
  private enum FirstFrame {
    case missing
    /// What it needs of the video is loaded.
    case loaded
    case shown
  }

  private struct State {
    var account: ViewerAccount
    var playback: BufferedPlayback
    var retry: ItemRetryPolicy
    var job: Job
    /// The position from which `playback` counts, on the source's timeline; nil before media of the job has come.
    var origin: MediaTime?
    /// The end of what is loaded, by track.
    var ends: [MediaTime?] = [nil, nil]
    /// The readers that wait for room, by track.
    var room: [TaskWait?] = [nil, nil]
    /// Where media is missing, which playback skips.
    var holes: [Range<Double>] = []
    var firstFrame = FirstFrame.missing
    var rung: ItemRung?
    /// The throughput by which rungs are chosen; nil if it is not known.
    var throughput: Double?
    /// Where the playlist lets playback begin (EXT-X-START), and the audio group of the first rung (HLS).
    var beginning: MediaTime?
    var audioGroup: String?
    /// The reader of separate audio, until loading ends.
    var audio: CountingReader?
    var live: LiveSegments?
    var catchUp = LiveCatchUp()
    /// The latency that the playlist asks for; nil for the manifest's.
    var liveTarget: Duration?
    /// The time of the next look at the live edge.
    var followsAt = Duration.zero
    /// Looks for newer segments, so that playback can jump to them.
    var lookout: Task<Void, Never>?
    /// The failure with which the look ends once what is loaded has been played.
    var failure: ReelError?
    var end: (ending: ViewerSums.Ending, time: Duration)?
    var timer: (call: any ScheduledCall, time: Duration)?
  }

  /// The least hole that playback skips, in seconds.
  private static let leastHole = 0.3
  /// The time between two looks at the live edge: in a stall, the next one may end it by a jump.
  private static let followInterval = Duration.milliseconds(500)
  private static let stallFollowInterval = Duration.milliseconds(100)

  package init(_ look: ViewerLook) {
    self.look = look
    runtime = CountedRuntime(look.settings.player.runtime)
    source = look.media
    rules = look.settings.rules
    scope = LoadScope(runtime: runtime)
    let state = State(
      account: ViewerAccount(look, decodes: false),
      playback: BufferedPlayback(trackCount: 1, rules: rules, at: look.clock.now),
      retry: look.settings.player.retryPolicy, job: Job(start: nil, scope: LoadScope(runtime: runtime)))
    self.state = Locked(state, rank: .observation)
  }

  /// Watches until the end of the source or of the look. Cancelling the task ends all transfers.
  package func run() async -> ViewerSums.Ending {
    change { $0.account.begin() }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.watch() }
      try? await over.wait()
      scope.cancel()
      group.cancelAll()
    }
    // Transfers that end with the reader are reported, which takes the lock.
    let (audio, lookout) = state.withLock { ($0.audio.take(), $0.lookout) }
    withExtendedLifetime(audio) {}
    lookout?.cancel()
    await runtime.waitForTasks()
    let now = look.clock.now
    return state.withLock { state in
      state.timer?.call.cancel()
      let (ending, time) = state.end ?? (.left, now)
      state.account.end(ending, at: time)
      return ending
    }
  }

  // MARK: - Loading

  private var loading: LoadingConfiguration {
    var loading = look.settings.player.loading
    loading.itemHeaders = look.access.headers
    return loading
  }

  private func watch() async {
    do {
      try await load(try await open())
    } catch let error as ReelError {
      change { state in
        state.account.add(.failure(error, .final), at: state.playback.now)
        finish(.failed(error), &state)
      }
    } catch {
      // Cancelled: the look is over.
    }
  }

  private func open() async throws -> OpenSource {
    let fetcher = look.fetcher(
      conditions: { [self] in requestConditions($0) },
      report: { [self] event in change { $0.account.add(event, at: $0.playback.now) } })
    while true {
      do {
        let opened = try await scope.perform { [self] in
          try await OpenSource(
            source, fetcher: fetcher, configuration: loading, scope: scope,
            recorder: StartupRecorder(clock: look.clock), gate: nil, logger: look.logger, readsAhead: false
          ).readingIndex()
        }
        try check(opened)
        return opened
      } catch let error as ReelError {
        let error = error.located(at: source.name)
        guard let pause = change({ retry(after: error, &$0) }) else { throw error }
        try await look.clock.sleep(for: pause)
      }
    }
  }

  private func check(_ source: OpenSource) throws(ReelError) {
    guard let format = source.manifestFormat else {
      throw ReelError(
        .unsupported, "a viewer that does not decode needs segments, and this file has no index of any",
        advice: "decode it, with --decode 100%")
    }
    if let refusal = look.settings.model?.refusal(of: format == .hls ? .hls : .dash) {
      throw ReelError(.unsupported, refusal)
    }
  }

  /// Loads until the end of the media, and after each jump from another position.
  private func load(_ source: OpenSource) async throws {
    guard case .presentation(let resolved) = source.source else { return }
    let presentation = resolved.presentation
    let hasAudio = presentation.playsSeparateAudio(loading)
    let role = ReaderRole.main(wantsAudio: !hasAudio)
    let ladder = try presentation.periods(carrying: role).first.map { period in
      try RungMatcher.ladder(of: period, role: role, configuration: loading)
    }
    let controller = look.settings.controller(firstListed: ladder?.first?.id) { [self] in conditions }
    let offsets = TimestampOffsets()
    var job = change { state in
      if hasAudio { state.playback.tracks.append(BufferedPlayback.Track()) }
      if let fault = presentation.live?.driftFault {
        let located = fault.located(at: self.source.name)
        state.account.add(.failure(located, .handled(.tolerated)), at: state.playback.now)
      }
      return state.job
    }
    let video = try CountingReader(
      source, for: role, controller: controller, offsets: offsets,
      log: { [self] in take($0, of: controller) }, scope: job.scope)
    while true {
      if job.start != nil { video.seek(to: job.start, scope: job.scope) }
      try await withThrowingTaskGroup(of: Bool.self) { [job] group in
        // True for a jump.
        group.addTask { (try? await job.jump.wait()) != nil }
        group.addTask {
          await self.read(video, .video, job)
          return false
        }
        if hasAudio {
          group.addTask {
            try await self.readAudio(of: source, offsets, job)
            return false
          }
        }
        var readerCount = hasAudio ? 2 : 1
        while readerCount > 0, try await group.next() == false { readerCount -= 1 }
        job.scope.cancel()
        group.cancelAll()
      }
      let next = state.withLock { $0.job }
      if next === job { return }
      job = next
    }
  }

  private func readAudio(of source: OpenSource, _ offsets: TimestampOffsets, _ job: Job) async throws {
    guard (try? await job.firstFrame.wait()) != nil else { return }
    let (known, group, beginning) = state.withLock { ($0.audio, $0.audioGroup, $0.beginning) }
    var configuration = loading
    configuration.preferredPeakBitRate = AudioSelector.peakBitRate
    configuration.maximumHeight = nil
    let reader =
      try known
      ?? CountingReader(
        source, for: .audio(group: group),
        controller: RungController(configuration, clock: look.clock), offsets: offsets,
        log: { [self] in take($0, of: nil) }, scope: job.scope)
    state.withLock { $0.audio = reader }
    if let start = job.start ?? beginning { reader.seek(to: start, scope: job.scope) }
    await read(reader, .audio, job)
  }

  /// Loads a track to its end, with retries.
  private func read(_ reader: CountingReader, _ kind: TrackKind, _ job: Job) async {
    while true {
      let failure: ReelError
      do {
        while let media = try await reader.next() {
          if let room = take(media, reader.streams, of: kind, job) { try await room.wait() }
        }
        return end(kind, fault: reader.endFault, job)
      } catch let error as ReelError {
        failure = error
      } catch {
        if Task.isCancelled || job.scope.isCancelled { return }
        failure = ReelError(.network, "a transfer was cancelled", at: source.name)
      }
      guard let (pause, place) = change({ fail(kind, failure, job, &$0) }),
        (try? await look.clock.sleep(for: pause)) != nil
      else { return }
      reader.seek(to: place, scope: job.scope)
    }
  }

  // MARK: Media

  /// Adds media, and returns a wait if the track has no room for more.
  private func take(
    _ media: LoadedMedia, _ streams: ReaderStreams, of kind: TrackKind, _ job: Job
  ) -> TaskWait? {
    change { state in
      guard state.job === job else { return nil }
      let index = kind.track
      // The first rung, by whose times others are placed.
      if kind == .video { state.live = streams.liveSegments ?? state.live }
      let origin = state.origin ?? begin(with: media, streams, &state)
      // Media that is loaded again on the way back to a failure is not new.
      let isNew = state.ends[index].map { media.end > $0 } ?? true
      if isNew, media.isWhole || !rules.loadsWholeSegments {
        let end = state.playback.tracks[index].end
        let start = (media.range.lowerBound - origin).seconds
        if kind == .video, media.followsGap, start - end > Self.leastHole { state.holes.append(end..<start) }
        state.ends[index] = media.end
        state.playback.tracks[index].end = (media.end - origin).seconds
        if state.retry.remaining < state.retry.attempts { state.retry.succeed() }
      }
      if kind == .video {
        if media.hasFirstFrame { job.firstFrame.finish(.success(())) }
        let needsAll = rules.firstFrame?.wholeSegment ?? false
        if state.firstFrame == .missing, needsAll ? media.isWhole : media.hasFirstFrame {
          state.firstFrame = .loaded
        }
      }
      state.playback.updateFilling(index)
      // Until the first frame, nothing plays that would make room.
      guard !state.playback.tracks[index].isFilling, kind == .audio || state.firstFrame != .missing else {
        return nil
      }
      let room = TaskWait()
      state.room[index] = room
      return room
    }
  }

  /// The first media of a job determines where playback begins.
  private func begin(
    with media: LoadedMedia, _ streams: ReaderStreams, _ state: inout State
  ) -> MediaTime {
    let start = state.job.start ?? streams.beginning?.time ?? media.range.lowerBound
    let origin = max(start, media.range.lowerBound)
    state.origin = origin
    if state.job.start == nil {
      state.beginning = streams.beginning?.time
      state.audioGroup = media.rung.audioGroup
      if state.beginning != nil, let distances = state.live?.distances(from: start) {
        state.liveTarget = max(distances.latency, distances.target)
      }
    }
    return origin
  }

  private func end(_ kind: TrackKind, fault: ReelError?, _ job: Job) {
    change { state in
      guard state.job === job else { return }
      job.firstFrame.finish(.success(()))
      if let fault { giveUp(kind, after: fault, &state) }
      state.playback.tracks[kind.track].isComplete = true
    }
  }

  /// Returns the pause after which a track is loaded again, and from where; nil if it is given up.
  private func fail(
    _ kind: TrackKind, _ failure: ReelError, _ job: Job, _ state: inout State
  ) -> (pause: Duration, place: MediaTime?)? {
    guard state.job === job else { return nil }
    var error = failure
    // Its servers were reached before.
    if state.origin != nil, error.kind == .network { error.isTemporary = true }
    if let pause = retry(after: error, &state) { return (pause, state.ends[kind.track] ?? job.start) }
    giveUp(kind, after: error, &state)
    return nil
  }

  /// Playback goes on without audio. Without video it ends once what is loaded has been played.
  private func giveUp(_ kind: TrackKind, after error: ReelError, _ state: inout State) {
    let now = state.playback.now
    switch kind {
    case .audio:
      let loss = MediaLoss(kind: .audio, reason: .missing, range: nil)
      state.account.add(.failure(error, .handled(.lost(loss))), at: now)
      state.playback.tracks[kind.track].isComplete = true
    case .video:
      state.account.add(.failure(error, .final), at: now)
      state.failure = error
      for index in state.playback.tracks.indices { state.playback.tracks[index].isComplete = true }
    }
  }

  /// Returns the pause before the next attempt, and reports it; nil if there is none.
  private func retry(after error: ReelError, _ state: inout State) -> Duration? {
    guard let pause = state.retry.next(after: error) else { return nil }
    state.account.add(.failure(error, .handled(.retried)), at: state.playback.now)
    return pause
  }

  /// Takes a report of a reader.
  ///
  /// - Parameter controller: Chooses the rungs of video; nil for audio.
  private func take(_ report: ReadingReport, of controller: RungController?) {
    switch report {
    case .rung(let rung):
      change { state in
        let rung = ItemRung(rung)
        guard state.rung != rung else { return }
        state.rung = rung
        state.account.add(.rung(rung), at: state.playback.now)
      }
    // Transfers of separate audio share the link and would measure only their part of it.
    case .transfer(let transfer, _):
      guard let controller else { break }
      controller.record(transfer)
      let throughput = controller.estimatedBandwidth
      state.withLock { $0.throughput = throughput }
    // An error without an outcome is thrown.
    case .failure(let error, _, let outcome): if let outcome { add(error, outcome) }
    case .damage(let error, _, let range):
      let kind: TrackKind = controller == nil ? .audio : .video
      add(error, range.map { .lost(MediaLoss(kind: kind, reason: .damaged, range: $0)) } ?? .tolerated)
    case .hole(let error, _, let loss): add(error, .lost(loss))
    case .file, .passedOver, .absence, .segment: break
    }
  }

  private func add(_ error: ReelError, _ outcome: ErrorLogEntry.Outcome) {
    change { $0.account.add(.failure(error, .handled(outcome)), at: $0.playback.now) }
  }

  /// The conditions for the choice of a rung.
  private var conditions: RungConditions {
    let player = look.settings.player
    var conditions = RungConditions()
    conditions.bufferTarget = look.settings.buffer
    conditions.peakBitRate = player.adaptsBitRate ? nil : player.loading.preferredPeakBitRate
    state.withLock { state in
      state.playback.go(to: look.clock.now)
      conditions.now = state.playback.now
      conditions.buffered = .seconds(max(0, state.playback.loadedEnd - state.playback.position))
      conditions.isRebuffering = state.playback.stalledSince != nil
    }
    return conditions
  }

  /// What is known when a request for these tracks is sent; nil for a manifest, a key and the like.
  private func requestConditions(_ requested: RequestedMedia.Tracks?) -> CMCDFetcher.Conditions {
    state.withLock { state in
      state.playback.go(to: look.clock.now)
      var conditions = CMCDFetcher.Conditions()
      conditions.isWaiting = !state.playback.isPlaying
      conditions.stallCount = state.account.sums.stallCount
      conditions.throughput = state.throughput
      conditions.rate = state.playback.rate
      if let requested {
        let track = state.playback.tracks[requested == .audio ? state.playback.tracks.count - 1 : 0]
        conditions.buffered = .seconds(max(0, track.end - state.playback.position))
      }
      return conditions
    }
  }

  // MARK: - Playback

  /// Changes the state at this time, and does what follows.
  @discardableResult
  private func change<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
    state.withLock { state in
      state.playback.go(to: look.clock.now)
      let result = body(&state)
      if state.end == nil { settle(&state) }
      return result
    }
  }

  private func settle(_ state: inout State) {
    let now = state.playback.now
    skipHoles(&state)
    for index in state.playback.tracks.indices {
      state.playback.updateFilling(index)
      if state.playback.tracks[index].isFilling { state.room[index].take()?.finish(.success(())) }
    }
    if state.firstFrame == .loaded, hasRest(state.playback) {
      state.firstFrame = .shown
      // Not after a jump.
      if state.account.sums.start == nil {
        state.account.add(.started(after: state.account.elapsed(at: now)), at: now)
      }
    }
    switch state.playback.play(mayBegin: state.firstFrame == .shown) {
    case .began, .resumed: state.account.add(.playing, at: now)
    case .stalled:
      state.followsAt = now
      state.account.add(.stalled, at: now)
    case nil: break
    }
    if state.live != nil, now >= state.followsAt {
      let isStalled = state.playback.stalledSince != nil
      state.followsAt = now + (isStalled ? Self.stallFollowInterval : Self.followInterval)
      followEdge(&state)
    }
    finishIfOver(&state)
    schedule(&state)
  }

  private func skipHoles(_ state: inout State) {
    while let hole = state.holes.first,
      hole.lowerBound <= state.playback.position + BufferedPlayback.instant
    {
      state.playback.skip(to: max(hole.upperBound, state.playback.position))
      state.holes.removeFirst()
    }
  }

  /// Returns true if all has come that a model's first frame needs besides the bytes of the frame.
  private func hasRest(_ playback: BufferedPlayback) -> Bool {
    guard let needs = rules.firstFrame else { return true }
    let tracks = needs.audio ? playback.tracks[...] : playback.tracks.prefix(1)
    return tracks.allSatisfy { track in
      let ahead = track.end - playback.position
      return track.isComplete || !track.isFilling || ahead > 0 && ahead >= needs.ahead
    }
  }

  /// Keeps a live source at its distance from the live edge.
  private func followEdge(_ state: inout State) {
    let isStalled = state.playback.stalledSince != nil
    guard state.playback.isPlaying || isStalled, let live = state.live, let origin = state.origin else {
      return
    }
    let position = origin + MediaTime(seconds: state.playback.position)
    guard let distances = live.distances(from: position) else { return }
    let now = state.playback.now
    state.account.add(.latency(distances.latency), at: now)
    let action = state.catchUp.action(
      latency: distances.latency, target: state.liveTarget ?? distances.target,
      oldestLatency: distances.limit, segmentDuration: distances.segmentDuration, isStalled: isStalled)
    switch action {
    case .normal: state.playback.setRate(1, at: now)
    case .rate(let rate): state.playback.setRate(rate, at: now)
    case .jump(let latency):
      let wanted = distances.edge - MediaTime(seconds: latency / .seconds(1))
      if !isStalled, live.isOutdated(at: wanted) {
        lookForNewer(live, at: wanted, &state)
      } else if let place = live.place(near: wanted, after: position) {
        jump(to: place, &state)
      }
    }
  }

  /// Looks for newer segments of the track by whose times others are placed: its own rung may not be loaded any more. A stall
  /// does not wait for them.
  private func lookForNewer(_ live: LiveSegments, at time: MediaTime, _ state: inout State) {
    guard state.lookout == nil else { return }
    state.lookout = runtime.task { [self] in
      try? await live.update(for: time)
      change { state in
        state.lookout = nil
        state.followsAt = state.playback.now
      }
    }
  }

  /// Ends the job, and begins one at a position.
  private func jump(to place: MediaTime, _ state: inout State) {
    let now = state.playback.now
    state.job.jump.finish(.success(()))
    state.job = Job(start: place, scope: LoadScope(runtime: scope.runtime))
    state.playback = BufferedPlayback(trackCount: state.playback.tracks.count, rules: rules, at: now)
    (state.origin, state.ends, state.room, state.holes) = (nil, [nil, nil], [nil, nil], [])
    state.firstFrame = .missing
    state.liveTarget = nil
    state.account.add(.jumped, at: now)
  }

  private func finishIfOver(_ state: inout State) {
    if state.playback.now >= look.end { return finish(.left, &state) }
    guard let end = state.playback.end else { return }
    if state.firstFrame != .shown {
      let empty = ReelError(.badMedia, "no video in the media", at: source.name)
      finish(.failed(state.failure ?? empty), &state)
    } else if state.playback.position >= end - BufferedPlayback.instant {
      finish(state.failure.map { .failed($0) } ?? .played, &state)
    }
  }

  private func finish(_ ending: ViewerSums.Ending, _ state: inout State) {
    guard state.end == nil else { return }
    state.end = (ending, state.playback.now)
    over.finish(.success(()))
  }

  /// Sets the timer for what comes next although nothing arrives.
  private func schedule(_ state: inout State) {
    guard state.end == nil else { return }
    let playback = state.playback
    var next = min(look.end, playback.nextTime ?? look.end)
    if let hole = state.holes.first?.lowerBound { next = min(next, playback.time(of: hole) ?? next) }
    if let end = playback.end { next = min(next, playback.time(of: end) ?? next) }
    if state.live != nil { next = min(next, state.followsAt) }
    if let timer = state.timer, timer.time <= next { return }
    state.timer?.call.cancel()
    let call = look.clock.schedule(at: next) { [weak self] in self?.change { $0.timer = nil } }
    state.timer = (call, next)
  }
}

extension TrackKind {
  /// The index of the track in a `BufferedPlayback`.
  fileprivate var track: Int { self == .video ? 0 : 1 }
}

extension ItemRung {
  fileprivate init(_ rung: Rung) {
    self.init(
      id: rung.id, bitRate: rung.bitsPerSecond ?? rung.averageBitsPerSecond ?? 0, size: rung.size)
  }
}
