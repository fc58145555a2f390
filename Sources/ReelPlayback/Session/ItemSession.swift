internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// One item being loaded and decoded for one player: from its source to the ring of pictures and the queue of sound.
///
/// Work is done in the turns of pumps: one reads video (and what is muxed with it), one reads audio that is a stream of
/// its own, one decodes pictures, one decodes sound. None of them waits for another inside of a turn; each is woken by
/// what it waits for. Only reading waits, for bytes, and a seek or the end of the session interrupts that.
///
/// ```
///  reader ---> ForwardBuffer ---> VideoPipeline ---> FrameRing ---> (the player's clock)
///                  |
///                  +------------> AudioPipeline ---> AudioQueue --->
/// ```
///
/// `stop()` ends everything; what is running ends by itself soon after.
final class ItemSession: Sendable {
  let item: PlayerItem
  let buffer: ForwardBuffer
  let ring: FrameRing
  let audio = AudioQueue()
  let startedAt: Duration

  private let environment: SessionEnvironment
  private let scope = LoadScope()
  private let recorder = StartupRecorder()
  private let domains = DomainTable()
  private let state: Locked<State>
  private let pumps: Pumps
  private let delegate: Delegate

  /// Who is told. Called on any thread, never with a lock held.
  struct Delegate: Sendable {
    /// There is something for the player to look at: a picture, room, an end, a failure.
    var wake: @Sendable () -> Void
    var event: @Sendable (PlayerEvent) -> Void
  }

  private final class Pumps: Sendable {
    let all = Locked<[PumpKind: Pump]>([:])

    func wake(_ kind: PumpKind) { all.withLock { $0[kind] }?.wake() }
  }

  enum PumpKind: Sendable, Hashable, CaseIterable {
    case reader
    case audioReader
    case video
    case audio
  }

  fileprivate struct State {
    var source: ResolvedSource?
    var resolver: SourceResolver?
    var context: TrackContext?
    var controller: RungController?
    var resolving: Task<Void, Never>?
    /// What ends the reads of a loader, for it to go to another place.
    var scopes: [MediaPacket.Kind: LoadScope] = [.video: LoadScope(), .audio: LoadScope()]
    var order = VideoPipeline.Order()
    /// What readers are to go to before they go on, and the epoch that this is for.
    var pendingSeek: [MediaPacket.Kind: (epoch: Int, time: MediaTime?)] = [:]
    var retry: ItemRetryPolicy
    var isStopped = false
    var stoppedPumps: [Pump] = []
    var stoppedResolving: Task<Void, Never>?
    var failure: ReelError?
    /// Why nothing was shown, where nothing else is wrong.
    var fruitless: ReelError?
    /// The failure is told when what is there has been shown.
    var isFailureDue = false
    var wantsAudio = true
    /// Audio is a stream of its own; nil before that is known.
    var hasSeparateAudio: Bool?
    var audioGroup: String?
    var hasVideoPacket = false
    var loops = false
    /// How much later each time through the item is than the one before.
    var shifts: [MediaTime] = [.zero]
    /// Passes that readers have begun so far.
    var passSerial = 0
    /// The pass that each reader is in.
    var passes: [MediaPacket.Kind: ItemPass] = [:]
    /// The last time through the item, when looping was given up; readers that were beyond it go back to its end.
    var cut: (iteration: Int, serial: Int)?
    var streams = ReaderStreams()
    var rate = 1.0
    var isRebuffering = false
    /// The player looks by itself how much there is.
    var isPlaying = false
    var prefersThroughput = false
    var live: LiveSegments?
    var readerWait: Duration = .zero
    var readerBusy: Duration = .zero
    var hasRecordedStartup = false
    var decodeDuration: Duration = .zero
    var videoTracks: [PlayerItem.Track] = []
    var audioTracks: [PlayerItem.Track] = []
    var rungBits: [String: Rung] = [:]
  }

  init(
    _ item: PlayerItem, environment: SessionEnvironment, start: MediaTime?, wantsAudio: Bool, loops: Bool,
    prefersThroughput: Bool, delegate: Delegate
  ) {
    self.item = item
    self.environment = environment
    self.delegate = delegate
    startedAt = environment.clock.now
    ring = FrameRing(
      frameCapacity: environment.ringFrameCapacity, byteCapacity: environment.ringByteCapacity)
    buffer = ForwardBuffer(limits: Self.limits(of: item, environment))
    var state = State(retry: environment.retryPolicy)
    state.wantsAudio = wantsAudio
    state.loops = loops
    state.prefersThroughput = prefersThroughput
    state.order.prefersThroughput = prefersThroughput
    if let start, start > .zero {
      let place = buffer.seek(to: start)
      state.order.epoch = place.epoch
      state.order.target = start
      state.pendingSeek = [.video: (place.epoch, start), .audio: (place.epoch, start)]
    }
    self.state = Locked(state)
    pumps = Pumps()
  }

  /// Begins to load. To be called once, when a session that has played the item before was stopped.
  func start() {
    item.reset()
    item.remainingRetries.set(environment.retryPolicy.remaining)
    let (pumps, delegate) = (pumps, delegate)
    makePumps()
    ring.setHandlers(onRoom: { pumps.wake(.video) }, onPicture: { delegate.wake() })
    audio.setOnRoom { pumps.wake(.audio) }
    item.setOnChange { [weak self] in self?.preferencesHaveChanged() }
    beginResolving()
  }

  /// Ends all loading and decoding, and lets go of all that is held.
  func stop() {
    let (resolving, scopes) = state.withLock { state in
      state.isStopped = true
      state.stoppedResolving = state.resolving.take()
      return (state.stoppedResolving, Array(state.scopes.values))
    }
    resolving?.cancel()
    scope.cancel()
    for scope in scopes { scope.cancel() }
    let all = pumps.all.withLock { all in
      defer { all = [:] }
      return Array(all.values)
    }
    for pump in all { pump.stop() }
    state.withLock { $0.stoppedPumps += all }
    item.setOnChange(nil)
    ring.flush()
    _ = buffer.reset(position: nil)
    audio.flush(generation: .max, start: nil)
  }

  /// Returns when nothing runs any more, after `stop()`.
  func waitUntilStopped() async {
    let (stopped, resolving) = state.withLock { ($0.stoppedPumps, $0.stoppedResolving) }
    await resolving?.value
    for pump in stopped { await pump.waitUntilStopped() }
  }

  // MARK: What the player asks

  var failure: ReelError? { state.withLock { $0.isFailureDue || !$0.hasVideoPacket ? $0.failure : nil } }
  /// Why there was no picture at all.
  var fruitlessFailure: ReelError? { state.withLock { $0.failure ?? $0.fruitless } }
  /// A failure, also one that is not due yet.
  var pendingFailure: ReelError? { state.withLock { $0.failure } }
  var streams: ReaderStreams { state.withLock { $0.streams } }
  var hasSeparateAudio: Bool { state.withLock { $0.hasSeparateAudio ?? false } }
  var generation: Int { state.withLock { $0.order.generation } }
  var bandwidth: Double? { state.withLock { $0.controller }?.estimatedBandwidth }
  var decodeDuration: Duration { state.withLock { $0.decodeDuration } }

  /// Shows what is left of the buffer, then fails.
  func makeFailureDue() { state.withLock { $0.isFailureDue = $0.failure != nil } }

  /// Less than any picture is on show.
  private static let instant = MediaTime(value: 1, timescale: 1_000_000)

  /// Goes to `time`, but not beyond the time through the item that is on show: everything that comes after has
  /// `generation`.
  ///
  /// - Parameter iteration: the time through the item that is on show.
  func seek(
    to time: MediaTime, tolerance: MediaTime, iteration: Int
  ) -> (generation: Int, target: MediaTime) {
    let (generation, time, old, isUnresolved) = state.withLock {
      state -> (Int, MediaTime, [LoadScope], Bool) in
      var time = time
      if iteration + 1 < state.shifts.count { time = min(time, state.shifts[iteration + 1] - Self.instant) }
      let generation = ring.flush()
      // What failed and may pass is tried again, also for a place that is still there.
      if state.failure?.isTemporary == true { _ = buffer.reset(position: nil) }
      let place = buffer.seek(to: time)
      state.order.generation = generation
      state.order.epoch = place.epoch
      state.order.target = time
      state.order.tolerance = tolerance
      audio.flush(generation: generation, start: time)
      let old = place.reload.compactMap { kind in
        state.send(kind, to: time, epoch: place.epoch)
      }
      var isUnresolved = false
      if let failure = state.failure, failure.isTemporary || !place.reload.isEmpty {
        state.failure = nil
        state.isFailureDue = false
        state.retry.succeed()
        isUnresolved = state.source == nil
      }
      return (generation, time, old, isUnresolved)
    }
    for scope in old { scope.cancel() }
    if isUnresolved { beginResolving() }
    for kind in PumpKind.allCases { pumps.wake(kind) }
    return (generation, time)
  }

  /// The position of what is on show: what lies behind is let go, and loading goes on where there is room again.
  func setPosition(_ time: MediaTime) {
    buffer.setPosition(time, epoch: state.withLock { $0.order.epoch })
    refill()
  }

  func setRate(_ rate: Double, status: TimeControlStatus) {
    state.withLock { state in
      state.rate = rate
      state.isRebuffering = status == .waitingToPlay(.toMinimizeStalls)
      state.isPlaying = status == .playing
    }
  }

  /// Bounds how many pictures are decoded ahead.
  func setFrameLimit(_ limit: Int?) {
    state.withLock { $0.order.limit = limit }
    pumps.wake(.video)
  }

  /// - Parameter iteration: the time through the item that is on show: the last one, where it does not loop any more.
  func setLoops(_ loops: Bool, iteration: Int) {
    state.withLock { state in
      let hadMore = state.loops && !loops && state.shifts.count > iteration + 1
      state.loops = loops
      state.order.lastIteration = loops ? .max : iteration
      guard hadMore else { return }
      state.shifts.removeLast(state.shifts.count - iteration - 1)
      state.passSerial += 1
      state.cut = (iteration, state.passSerial)
      var ended = Set(
        state.passes.filter { $1.iteration > iteration && state.pendingSeek[$0] == nil }.map(\.key))
      if ended.contains(.video), state.hasSeparateAudio != true { ended.insert(.audio) }
      audio.drop(after: state.shifts[iteration])
      buffer.drop(after: iteration, ending: ended, before: state.passSerial)
      ring.drop(after: iteration)
    }
    for kind in PumpKind.allCases { pumps.wake(kind) }
  }

  func setWantsAudio(_ wants: Bool) {
    let hasChanged = state.withLock { state in
      defer { state.wantsAudio = wants }
      return state.wantsAudio != wants
    }
    guard hasChanged else { return }
    let position = buffer.position
    let epoch = buffer.dropAudio()
    let old = state.withLock { state in
      let old = state.send(.audio, to: position, epoch: epoch)
      audio.flush(generation: state.order.generation, start: position)
      return old
    }
    old?.cancel()
    buffer.setHasSeparateAudio(wants && hasSeparateAudio)
    for kind in PumpKind.allCases { pumps.wake(kind) }
  }

  /// True where the sound of its own stream has run out, and more is to come.
  func lacksAudio(at time: MediaTime) -> Bool {
    let wants = state.withLock { $0.wantsAudio && $0.hasSeparateAudio == true }
    return wants && audio.isEmpty && !audio.isDrained && buffer.isAudioBehind(time)
  }

  /// There is sound that has not been handed out yet.
  var hasAudioLeft: Bool {
    state.withLock { $0.wantsAudio } && !audio.isDrained
  }

  /// Publishes how much there is, and gives it.
  func publishLevel(isStalled: Bool, rate: Double) -> (level: ForwardBuffer.Level, keepsUp: Bool) {
    let level = buffer.level
    let target = item.preferences.forwardBufferDuration
    let isDry = level.isConsumed && !level.isComplete && ring.statistics.frameCount == 0
    let keepsUp =
      !isDry
      && environment.thresholds.isLikelyToKeepUp(
        buffered: .seconds(level.ahead.seconds), target: target, isComplete: level.isComplete,
        isFull: level.isResting, isAfterStall: isStalled, rate: rate)
    item.loadedTimeRanges.set(level.range.map { [$0] } ?? [])
    item.isPlaybackBufferFull.set(level.isFull || level.isComplete)
    item.isPlaybackBufferEmpty.set(level.isConsumed && ring.statistics.frameCount == 0)
    item.isPlaybackLikelyToKeepUp.set(keepsUp)
    if level.isFull || level.isComplete, item.preloadStage.value == .firstFrame {
      item.preloadStage.set(.buffered)
    }
    return (level, keepsUp)
  }

  /// The first picture is there.
  func noteFirstPicture() {
    let report = state.withLock { state -> StartupReport? in
      guard !state.hasRecordedStartup else { return nil }
      state.hasRecordedStartup = true
      recorder.close(
        PictureReader.Timing(
          source: state.readerWait, demux: state.readerBusy, decode: state.decodeDuration))
      return recorder.current
    }
    guard let report else { return }
    item.setStartup(report)
    if item.preloadStage.value < .firstFrame { item.preloadStage.set(.firstFrame) }
  }

  /// How far the edge of a live item is ahead of `time`, how far its oldest segment is behind, and the delay that its
  /// manifest asks for; nil for an item that is not live.
  func liveDistances(from time: MediaTime) -> LiveDistances? {
    guard let live = state.withLock({ $0.live }), let timing = live.live else { return nil }
    let edge = live.edge
    let window = live.window
    let latency = Duration.seconds((edge - time).seconds)
    return LiveDistances(
      latency: latency, target: .seconds(timing.delay.seconds),
      oldest: .seconds((edge - window.start).seconds) - .seconds((edge - window.end).seconds),
      segmentDuration: window[window.endIndex - 1].map { .seconds($0.duration.seconds) }, edge: edge)
  }

  struct LiveDistances: Sendable {
    var latency: Duration
    var target: Duration
    var oldest: Duration
    var segmentDuration: Duration?
    var edge: MediaTime
  }
}

extension ItemSession.State {
  /// A reader begins to read a pass, from its beginning or another place in it.
  fileprivate mutating func beginPass(_ iteration: Int, of loader: MediaPacket.Kind) -> ItemPass {
    passSerial += 1
    let pass = ItemPass(iteration: iteration, shift: shifts[iteration], serial: passSerial)
    passes[loader] = pass
    return pass
  }

  /// Has a loader go to `time`; gives what ends its reads.
  fileprivate mutating func send(
    _ loader: MediaPacket.Kind, to time: MediaTime?, epoch: Int
  ) -> LoadScope? {
    pendingSeek[loader] = (epoch, time)
    return scopes.updateValue(LoadScope(), forKey: loader)
  }
}

// MARK: - Loading

extension ItemSession {
  private static func limits(of item: PlayerItem, _ environment: SessionEnvironment) -> ForwardBuffer.Limits {
    let seconds = item.preferences.forwardBufferDuration / .seconds(1)
    return ForwardBuffer.Limits(
      target: MediaTime(seconds: seconds), refillShare: environment.thresholds.refillShare,
      byteCount: environment.thresholds.maximumByteCount)
  }

  private func preferencesHaveChanged() {
    buffer.setLimits(Self.limits(of: item, environment))
    refill()
  }

  private func refill() {
    if buffer.takeRefill(.video) { pumps.wake(.reader) }
    if buffer.takeRefill(.audio) { pumps.wake(.audioReader) }
  }

  private func beginResolving() {
    let resolving = Task { [weak self] in
      guard let self else { return }
      await self.resolve()
    }
    let isStopped = state.withLock { state in
      if !state.isStopped { state.resolving = resolving }
      return state.isStopped
    }
    if isStopped { resolving.cancel() }
  }

  /// Finds out what the source is, with retries.
  private func resolve() async {
    while true {
      do {
        try await resolveOnce()
        pumps.wake(.reader)
        return
      } catch {
        if Task.isCancelled || state.withLock({ $0.isStopped }) { return }
        let other =
          error is CancellationError
          ? ReelError(.network, "a transfer was cancelled") : ReelError(.internalFault, "\(error)")
        let located = (error as? ReelError ?? other).located(at: item.source.name)
        noteFailure(located, rung: "")
        guard let delay = nextRetry(after: located) else { return fail(located) }
        do { try await environment.clock.sleep(for: delay) } catch { return }
      }
    }
  }

  private func resolveOnce() async throws {
    let source = item.source
    let url: URL? = if case .url(let url) = source { url } else { nil }
    let fetcher = ConfinedFetcher(base: environment.fetcher, source: url)
    let resolver = SourceResolver(
      fetcher: fetcher, configuration: environment.loading, scope: scope, recorder: recorder, note: nil)
    let context = TrackContext(
      name: source.name, fetcher: fetcher, configuration: environment.loading, scope: scope,
      recorder: recorder, gate: environment.gate, logger: environment.logger,
      readsAhead: state.withLock { $0.prefersThroughput })
    let resolved = try await resolver.resolve(source)
    let isStopped = state.withLock { state in
      state.source = resolved
      state.resolver = resolver
      state.context = context
      return state.isStopped
    }
    // The item may be played by another session by now.
    if isStopped { throw CancellationError() }
    item.preloadStage.set(.manifest)
  }

  /// The pause before the next attempt; nil where there is none.
  private func nextRetry(after error: ReelError) -> Duration? {
    let (delay, policy) = state.withLock { state in
      let delay = state.isStopped ? nil : state.retry.next(after: error)
      return (delay, state.retry)
    }
    guard let delay else { return nil }
    item.remainingRetries.set(policy.remaining)
    delegate.event(
      .retry(attempt: policy.attempts - policy.remaining, of: policy.attempts, after: delay, error))
    return delay
  }

  private func fail(_ error: ReelError) {
    state.withLock { $0.failure = error }
    delegate.wake()
  }

  private func makePumps() {
    let (threads, clock) = (WorkerThreads.shared, environment.clock)
    let reading = Reading(kind: .video)
    let readingAudio = Reading(kind: .audio)
    let video = PipelineBox<VideoPipeline>()
    let audioBox = PipelineBox<AudioPipeline>()
    pumps.all.withLock { all in
      all[.reader] = Pump(named: "read", threads: threads, clock: clock) { [weak self] in
        self?.read(reading) ?? .idle
      }
      all[.audioReader] = Pump(named: "read-audio", threads: threads, clock: clock) { [weak self] in
        self?.read(readingAudio) ?? .idle
      }
      all[.video] = Pump(named: "decode", threads: threads, clock: clock) { [weak self] in
        self?.decodeVideo(video)
        return .idle
      }
      all[.audio] = Pump(named: "decode-audio", threads: threads, clock: clock) { [weak self] in
        self?.decodeAudio(audioBox)
        return .idle
      }
    }
  }

  /// What a reader's pump keeps from turn to turn.
  private final class Reading: @unchecked Sendable {
    // Sendable: touched in its pump's turns only, of which there is one at a time.
    let kind: MediaPacket.Kind
    var reader: (any PacketReader)?
    var epoch = 0
    var scope: LoadScope?
    var hasEnded = false
    var iteration = 0
    var isNew = true
    var dropsAudio = false
    /// Where it was sent last, on the player's timeline; nil for the beginning.
    var target: MediaTime?
    /// A place that was sought, until a key frame at or before it was read.
    var landing: Landing?

    init(kind: MediaPacket.Kind) { self.kind = kind }
  }

  /// A container's idea of the key frame before a time may be off, as it goes by decoding times, and a playlist's
  /// durations are rounded: where the first key frame is a later one, the seek is made again further back.
  private struct Landing {
    let target: MediaTime
    let pass: ItemPass
    var step = 0
    /// What was read so far, in order.
    var units: [(MediaPacket, MediaPacket.Kind)] = []

    static let stepLimit = 6
    /// A stream without key frames is taken as it comes.
    static let unitLimit = 1000
  }

  /// What a decoder's pump keeps from turn to turn.
  private final class PipelineBox<Pipeline>: @unchecked Sendable {
    // Sendable: touched in its pump's turns only, of which there is one at a time.
    var pipeline: Pipeline?
  }

  private func read(_ reading: Reading) -> Pump.Next {
    do {
      while true {
        guard let reader = try takeUp(reading) else { return .idle }
        endAfterLastIteration(reading)
        guard !reading.hasEnded || goesRound(reading), buffer.wantsMore(reading.kind) else { return .idle }
        let isFirst = !state.withLock { $0.hasVideoPacket }
        let start = ContinuousClock.now
        let waited = reader.waits
        defer {
          if isFirst { noteTime(ContinuousClock.now - start, since: waited, reader.waits) }
        }
        let unit = try reader.next(allowingTentative: isFirst)
        try take(unit, from: reader, reading)
      }
    } catch is CancellationError {
      // Sought or stopped: the next turn knows. Else somebody else has ended a transfer.
      let (isStopped, isSought) = state.withLock { ($0.isStopped, $0.pendingSeek[reading.kind] != nil) }
      if isStopped { return .idle }
      if isSought { return .again }
      return recover(from: ReelError(.network, "a transfer was cancelled", at: item.source.name), reading)
    } catch {
      let unknown = ReelError(.internalFault, "\(error)", at: item.source.name)
      return recover(from: error as? ReelError ?? unknown, reading)
    }
  }

  /// Accounts for the time that a reader took.
  private func noteTime(_ duration: Duration, since before: ReaderWaits, _ after: ReaderWaits) {
    let media = after.media - before.media
    state.withLock { state in
      state.readerWait += media
      state.readerBusy += max(.zero, duration - media - (after.manifests - before.manifests))
    }
  }

  /// The reader, made where there is none, and gone to where it was sent; nil where there is nothing to read.
  private func takeUp(_ reading: Reading) throws -> (any PacketReader)? {
    let (source, context, resolver, seek, scope, isWanted) = state.withLock { state in
      let isWanted =
        !state.isStopped && state.failure == nil
        && (reading.kind == .video || state.wantsAudio && state.hasSeparateAudio == true)
      // A seek that has come too early waits for the source.
      let seek = state.source == nil || !isWanted ? nil : state.pendingSeek.removeValue(forKey: reading.kind)
      return (state.source, state.context, state.resolver, seek, state.scopes[reading.kind], isWanted)
    }
    guard isWanted, let source, let context, let resolver, let scope else { return nil }
    let reader: any PacketReader
    if let made = reading.reader {
      reader = made
    } else {
      reader = try makeReader(reading.kind, source, context, resolver, scope: scope)
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
      reader.setDropsAudio(drops)
    }
    return reader
  }

  /// - Parameter time: on the player's timeline.
  private func go(
    to time: MediaTime?, _ reader: any PacketReader, _ reading: Reading, scope: LoadScope
  ) throws {
    let pass = state.withLock { state in
      let iteration = time.flatMap { time in state.shifts.lastIndex { $0 <= time } } ?? 0
      return state.beginPass(iteration, of: reading.kind)
    }
    reading.scope = scope
    reading.target = time
    reading.hasEnded = false
    reading.iteration = pass.iteration
    reading.landing = nil
    if reading.kind == .video, let time, time > pass.shift {
      reading.landing = Landing(target: time, pass: pass)
    }
    try reader.seek(to: time.map { $0 - pass.shift }, pass: pass, scope: scope)
  }

  /// Holds packets back until it is clear that a seek has landed before its target; gives those that can go on.
  private func landed(
    _ packet: MediaPacket, _ kind: MediaPacket.Kind, _ reader: any PacketReader, _ reading: Reading
  ) throws -> [(MediaPacket, MediaPacket.Kind)] {
    guard var landing = reading.landing else { return [(packet, kind)] }
    let isKey = kind == .video && packet.isKey
    if kind == .audio || isKey || landing.units.count >= Landing.unitLimit {
      landing.units.append((packet, kind))
    }
    reading.landing = landing
    guard isKey || landing.units.count > Landing.unitLimit else { return [] }
    if packet.time > landing.target, landing.step < Landing.stepLimit {
      try stepBack(reader, reading)
      return []
    }
    reading.landing = nil
    return landing.units
  }

  private func stepBack(_ reader: any PacketReader, _ reading: Reading) throws {
    guard var landing = reading.landing, let scope = reading.scope else { return }
    let back = MediaTime(value: 2 << Int64(landing.step), timescale: 1)
    let place = max(.zero, landing.target - landing.pass.shift - back)
    landing.units = []
    // At the beginning there is nothing further back.
    landing.step = place == .zero ? Landing.stepLimit : landing.step + 1
    reading.landing = landing
    try reader.seek(to: place, pass: landing.pass, scope: scope)
  }

  private func makeReader(
    _ kind: MediaPacket.Kind, _ source: ResolvedSource, _ context: TrackContext, _ resolver: SourceResolver,
    scope: LoadScope
  ) throws -> any PacketReader {
    switch source {
    case .resource(let resource):
      state.withLock { $0.hasSeparateAudio = false }
      item.beginAccess(AccessLogEntry())
      return ResourcePacketReader(resource, role: .main(wantsAudio: true), context: context, scope: scope)
    case .presentation(let resolved):
      let role: ReaderRole
      let controller: RungController
      switch kind {
      case .video:
        let separate = hasSeparateAudio(in: resolved.presentation)
        state.withLock { $0.hasSeparateAudio = separate }
        buffer.setHasSeparateAudio(separate && state.withLock { $0.wantsAudio })
        role = .main(wantsAudio: !separate)
        controller = RungController(adaptation: makeAdaptation()) { [weak self] in
          self?.conditions ?? RungConditions()
        }
        state.withLock { $0.controller = controller }
      case .audio:
        role = .audio(group: state.withLock { $0.audioGroup })
        let clock = environment.clock
        controller = RungController(adaptation: FixedRung()) {
          var conditions = RungConditions()
          conditions.now = clock.now
          conditions.bandwidthCap = Self.audioBitRateCap
          return conditions
        }
      }
      return SegmentedPacketReader(
        resolved, role: role, resolver: resolver, context: context, controller: controller,
        domains: domains, keys: KeyStore(fetcher: context.fetcher, headers: context.configuration.headers),
        log: SessionLog(session: self, isVideo: kind == .video), scope: scope)
    }
  }

  /// Of several bit rates of a rendition, the highest up to this.
  private static var audioBitRateCap: Int { 192_000 }

  private func hasSeparateAudio(in presentation: Presentation) -> Bool {
    let period = presentation.isLive ? presentation.periods.last : presentation.periods.first
    guard let period else { return false }
    return period.trackGroups.contains { group in
      group.kind == .audio && group.unplayableReason == nil
        && group.rungs.contains(where: AudioSelector.isDecodable)
    }
  }

  private func makeAdaptation() -> any RungAdaptation {
    guard environment.isAdaptive else { return FixedRung() }
    var options = AdaptiveRungs.Options()
    options.initialEstimate = environment.initialBandwidth.map { Int($0) }
    return AdaptiveRungs(options: options)
  }

  private var conditions: RungConditions {
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
  private func endAfterLastIteration(_ reading: Reading) {
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
  private func goesRound(_ reading: Reading) -> Bool {
    let pass = state.withLock { state -> ItemPass? in
      guard state.loops else { return nil }
      let next = reading.iteration + 1
      if next < state.shifts.count { return state.beginPass(next, of: reading.kind) }
      guard reading.kind == .video, next == state.shifts.count, let end = buffer.end(of: .video),
        end > state.shifts[reading.iteration]
      else { return nil }
      state.shifts.append(end)
      return state.beginPass(next, of: reading.kind)
    }
    guard let pass, let reader = reading.reader, let scope = reading.scope else { return false }
    do {
      try reader.seek(to: nil, pass: pass, scope: scope)
    } catch {
      return false
    }
    reading.iteration = pass.iteration
    reading.hasEnded = false
    buffer.goOn(from: reading.kind, epoch: reading.epoch)
    return true
  }

  private func take(_ unit: ReadUnit, from reader: any PacketReader, _ reading: Reading) throws {
    switch unit {
    case .tentative(let packet):
      guard reading.landing == nil else { return }
      noteStreams(reader, reading.kind)
      buffer.offerTentative(packet, epoch: reading.epoch)
      pumps.wake(.video)
    case .packet(let packet, let kind):
      noteStreams(reader, reading.kind)
      for (packet, kind) in try landed(packet, kind, reader, reading) {
        // What is read once more, to get to where it failed, is no progress.
        let isNews = buffer.end(of: kind).map { packet.end > $0 } ?? true
        guard buffer.append(packet, kind, from: reading.kind, epoch: reading.epoch) else { return }
        noteProgress(isVideo: kind == .video, isNews: isNews)
      }
      pumps.wake(kind == .video ? .video : .audio)
      if !state.withLock({ $0.isPlaying }) { delegate.wake() }
    case .end:
      if let landing = reading.landing, landing.step < Landing.stepLimit {
        // No key frame from there to the end: further back.
        try stepBack(reader, reading)
        return
      }
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

  private func tellEnd(_ reading: Reading) {
    var kinds: Set<MediaPacket.Kind> = [reading.kind]
    if reading.kind == .video, !hasSeparateAudio { kinds.insert(.audio) }
    buffer.end(kinds, from: reading.kind, epoch: reading.epoch)
    pumps.wake(.video)
    pumps.wake(.audio)
    delegate.wake()
  }

  private func noteProgress(isVideo: Bool, isNews: Bool) {
    let (isFirst, hadRetries, attempts, beginsAudio) = state.withLock { state in
      let isFirst = isVideo && !state.hasVideoPacket
      if isVideo { state.hasVideoPacket = true }
      let hadRetries = isNews && state.retry.remaining < state.retry.attempts
      if hadRetries { state.retry.succeed() }
      return (isFirst, hadRetries, state.retry.remaining, isFirst && state.hasSeparateAudio == true)
    }
    if isFirst, item.preloadStage.value < .initialization { item.preloadStage.set(.initialization) }
    if hadRetries { item.remainingRetries.set(attempts) }
    // The first picture goes before the sound.
    if beginsAudio { pumps.wake(.audioReader) }
  }

  private func noteStreams(_ reader: any PacketReader, _ kind: MediaPacket.Kind) {
    let streams = reader.streams
    let (isChanged, tracks) = state.withLock { state -> (Bool, [PlayerItem.Track]) in
      let tracks = streams.tracks(of: kind)
      switch kind {
      case .video:
        state.streams = streams
        state.audioGroup = streams.rung?.audioGroup ?? state.audioGroup
        if let live = (reader as? SegmentedPacketReader)?.supply as? LiveSegments { state.live = live }
        guard tracks != state.videoTracks else { return (false, []) }
        state.videoTracks = tracks
      case .audio:
        guard tracks != state.audioTracks else { return (false, []) }
        state.audioTracks = tracks
      }
      return (true, state.videoTracks + state.audioTracks)
    }
    guard isChanged else { return }
    item.tracks.set(tracks)
    if kind == .video { item.duration.set(streams.live == nil ? streams.duration : nil) }
  }

  private func recover(from error: ReelError, _ reading: Reading) -> Pump.Next {
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
      // Without its sound the item plays on.
      state.withLock { state in
        state.wantsAudio = false
      }
      buffer.setHasSeparateAudio(false)
      buffer.end([.audio], from: .audio, epoch: reading.epoch)
      pumps.wake(.audio)
      delegate.wake()
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

  // MARK: Decoding

  private func decodeVideo(_ box: PipelineBox<VideoPipeline>) {
    let pipeline: VideoPipeline
    if let made = box.pipeline {
      pipeline = made
    } else {
      let scope = scope
      pipeline = VideoPipeline(
        buffer: buffer, ring: ring,
        options: VideoPipeline.Options(
          name: item.source.name, logger: environment.logger, gate: environment.gate,
          threads: environment.loading.decoderThreads,
          noteDecoding: { [weak self] duration in self?.state.withLock { $0.decodeDuration = duration } },
          noteFailure: { [weak self] error in self?.noteFruitlessRun(error) }),
        isCancelled: { scope.isCancelled })
      box.pipeline = pipeline
    }
    let order = state.withLock { $0.order }
    do {
      _ = try pipeline.turn(order)
      refill()
    } catch is CancellationError {
      // Sought or stopped: there is another turn, or none.
      if !scope.isCancelled { pumps.wake(.video) }
    } catch {
      let unknown = ReelError(.internalFault, "\(error)")
      fail((error as? ReelError ?? unknown).located(at: item.source.name))
      ring.finish(generation: order.generation)
    }
  }

  /// A run has shown nothing: where nothing else does, that is why.
  private func noteFruitlessRun(_ error: ReelError) {
    state.withLock { $0.fruitless = $0.fruitless ?? error.located(at: item.source.name) }
  }

  private func decodeAudio(_ box: PipelineBox<AudioPipeline>) {
    let pipeline =
      box.pipeline
      ?? AudioPipeline(buffer: buffer, queue: audio, name: item.source.name, logger: environment.logger)
    box.pipeline = pipeline
    let (epoch, generation) = state.withLock { (buffer.epoch(of: .audio), $0.order.generation) }
    do {
      try pipeline.turn(epoch: epoch, generation: generation)
      refill()
      delegate.wake()
    } catch {
      // Without its sound the item plays on.
      noteFailure(error.located(at: item.source.name), rung: "")
      audio.finish(generation: generation)
      // Another run may be sound.
      pumps.wake(.audio)
    }
  }
}

extension ReaderStreams {
  /// What they are for who plays them.
  fileprivate func tracks(of kind: MediaPacket.Kind) -> [PlayerItem.Track] {
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

// MARK: - Accounts

/// Carries what readers tell to the item's logs.
private struct SessionLog: ReadingLog {
  weak let session: ItemSession?
  let isVideo: Bool

  func noteRung(_ rung: Rung) { session?.noteRung(rung) }

  func noteTransfer(_ transfer: SegmentTransfer, rung: String) {
    if isVideo { session?.noteTransfer(transfer, rung: rung) }
  }

  func noteFailure(_ error: ReelError, rung: String) { session?.noteFailure(error, rung: rung) }

  func notePassedOver(_ error: ReelError, start: MediaTime, duration: MediaTime) {
    if isVideo { session?.note(.segmentMissed(start: start, duration: duration, error)) }
  }

  func noteGap(start: MediaTime, duration: MediaTime) {}
}

extension ItemSession {
  fileprivate func note(_ event: PlayerEvent) { delegate.event(event) }

  fileprivate func noteRung(_ rung: Rung) {
    state.withLock { $0.rungBits[rung.id] = rung }
    var entry = AccessLogEntry(rung: rung.id)
    entry.indicatedBitRate = rung.bitsPerSecond ?? rung.averageBitsPerSecond
    entry.size = rung.size
    item.beginAccess(entry)
  }

  fileprivate func noteTransfer(_ transfer: SegmentTransfer, rung: String) {
    state.withLock { $0.controller }?.note(transfer)
    item.updateAccess(rung: rung) { entry in
      entry.byteCount += transfer.byteCount
      entry.requestCount += 1
      entry.measuredByteCount += transfer.freeByteCount
      entry.transferDuration += transfer.freeEnd - transfer.began
    }
  }

  fileprivate func noteFailure(_ error: ReelError, rung: String) {
    item.log(ErrorLogEntry(error: error, rung: rung.isEmpty ? nil : rung, time: buffer.position))
  }
}
