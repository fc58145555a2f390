internal import ReelCore

/// Decides how one item is loaded: events in, actions out. A pure value.
///
/// - Loading begins as soon as there is a target, or playback. Temporary failures are retried according to
///   the policy. Others are final at once, except that an item with packets has reached its servers before,
///   so a failure to reach them again may be temporary.
/// - The video loader comes first. Separate audio is loaded after the first video packet, and left out if it
///   fails.
/// - A seek moves the loaders. Errors from the previous position are ignored.
/// - A final failure ends loading. It is reported when the loaded media has been shown.
struct LoadingMachine: Sendable {
  typealias Loader = MediaPacket.Kind

  enum Event: Sendable {
    case began
    /// The target of loading has changed; nil for playing.
    case targetChanged(PreloadTarget?)
    /// The source has been resolved.
    case resolved
    case resolvingFailed(ReelError)
    /// The streams of the source are known.
    case opened(hasSeparateAudio: Bool)
    /// The buffer has moved; the loaders in `reload` must follow.
    case sought(VideoPipeline.Order, reload: Set<Loader>)
    /// The audio was dropped. If it is wanted, it is loaded again from `place`.
    case audioWanted(Bool, bufferGeneration: Int, place: MediaTime?)
    /// A packet was read.
    ///
    /// - isNews: True if it comes after all packets loaded so far.
    case packetRead(Loader, isNews: Bool)
    /// A loader has reached the end of the item.
    case ended(Loader, bufferGeneration: Int, fault: ReelError?)
    /// A loader failed at `place`.
    case failed(Loader, ReelError, bufferGeneration: Int, place: MediaTime?)
    /// Separate audio has been missing for too long.
    case audioMissed(ReelError, bufferGeneration: Int)
    case decodingFailed(ReelError)
    /// A span ended without any frame.
    case spanWasFruitless(ReelError)
    /// The loaded media has been shown.
    case failureIsDue
    /// The first frame, or the first since a seek, is about to be shown.
    case firstFrameDecoded
    case stopped
  }

  enum Action: Sendable, Equatable {
    /// Resolves the source after a pause.
    case resolve(after: Duration)
    /// Interrupts a loader's read.
    case interrupt(Loader)
    /// The loader continues after a pause.
    case loadAgain(Loader, after: Duration)
    case wake(ItemSession.LoopKind)
    case wakePlayer
    case updateLimits
    case fillBuffer
    /// No more packets of these kinds follow.
    case endBuffer(Set<Loader>, from: Loader, bufferGeneration: Int, isBroken: Bool)
    case setHasSeparateAudio(Bool)
    case reached(PreloadStage)
    case log(ReelError, ErrorLogEntry.Outcome)
    case publishRetries(remaining: Int)
    case announceRetry(attempt: Int, of: Int, after: Duration, ReelError)
    /// No more tracks will be announced.
    case tracksAreKnown
  }

  /// The task of a loader.
  struct Assignment: Sendable, Equatable {
    /// The seek to make first; nil to continue where it is.
    var seek: Seek?
    var dropsAudio: Bool
  }

  struct Seek: Sendable, Equatable {
    let bufferGeneration: Int
    /// On the player's timeline; nil for the beginning.
    let time: MediaTime?
  }

  private(set) var target: PreloadTarget?
  /// The current order for decoding.
  private(set) var order = VideoPipeline.Order()
  private(set) var wantsAudio: Bool
  /// Whether audio is a separate stream; nil until that is known.
  private(set) var hasSeparateAudio: Bool?
  private(set) var hasVideoPacket = false
  private(set) var hasFirstFrame = false
  /// True if no frame has been shown since the last seek.
  private var awaitsFrame = true
  private(set) var isStopped = false
  /// The error that ended loading.
  private(set) var failure: ReelError?
  /// The reason why nothing was shown, if there is no other failure.
  private(set) var fruitlessFailure: ReelError?
  var iterations: LoopIterations

  private var hasBegun = false
  private var isResolved = false
  /// True if the loaded media has been shown, so the failure can be reported.
  private var isFailureDue = false
  private var retry: ItemRetryPolicy
  /// The seeks that loaders make before they continue to read.
  private var pendingSeeks: [Loader: Seek] = [:]
  private var tracks: [Loader: [PlayerItem.Track]] = [:]
  private var areAllAnnounced = false
  /// The loaders that have read to the end. They announce no more tracks.
  private var hasReadEnd: Set<Loader> = []
  private var hasReportedTracks = false

  init(
    target: PreloadTarget?, wantsAudio: Bool, loops: Bool, prefersThroughput: Bool, retry: ItemRetryPolicy
  ) {
    self.target = target
    self.wantsAudio = wantsAudio
    self.retry = retry
    iterations = LoopIterations(loops: loops)
    order.limit = target?.frameLimit
    order.prefersThroughput = prefersThroughput
  }

  /// Begins loading at `time`, to which the buffer has already been moved.
  mutating func start(at time: MediaTime, bufferGeneration: Int) {
    order.bufferGeneration = bufferGeneration
    order.target = time
    for loader in Loader.allCases {
      pendingSeeks[loader] = Seek(bufferGeneration: bufferGeneration, time: time)
    }
  }

  mutating func handle(_ event: Event) -> [Action] {
    switch event {
    case .began:
      return begin()
    case .targetChanged(let target):
      guard self.target != target else { return [] }
      self.target = target
      order.limit = target?.frameLimit
      return [.updateLimits] + begin() + [.fillBuffer] + Self.wakeAll
    case .resolved:
      isResolved = true
      return [.reached(.manifest), .wake(.reader)]
    case .resolvingFailed(let error):
      guard !isStopped else { return [] }
      guard let (delay, actions) = tryAgain(after: error) else {
        failure = error
        return [.log(error, .failed), .wakePlayer]
      }
      return [.log(error, .retried)] + actions + [.resolve(after: delay)]
    case .opened(let hasSeparateAudio):
      self.hasSeparateAudio = hasSeparateAudio
      return []
    case .sought(let order, let reload):
      return seek(order, reload)
    case .audioWanted(let wants, let bufferGeneration, let place):
      wantsAudio = wants
      pendingSeeks[.audio] = Seek(bufferGeneration: bufferGeneration, time: place)
      return [.interrupt(.audio)] + reportTracks()
        + [.setHasSeparateAudio(wants && hasSeparateAudio == true)] + Self.wakeAll
    case .packetRead(let kind, let isNews):
      return progress(kind, isNews: isNews)
    case .ended(let loader, let bufferGeneration, let fault):
      if let fault { failure = failure ?? fault }
      return (fault.map { [.log($0, .failed)] } ?? []) + end(loader, bufferGeneration: bufferGeneration)
    case .failed(let loader, let error, let bufferGeneration, let place):
      return fail(loader, error, bufferGeneration: bufferGeneration, place: place)
    case .audioMissed(let error, let bufferGeneration):
      return [.log(error, Self.audioLoss)] + giveUpAudio(bufferGeneration: bufferGeneration)
    case .decodingFailed(let error):
      failure = error
      return [.log(error, .failed), .wakePlayer]
    case .spanWasFruitless(let error):
      fruitlessFailure = fruitlessFailure ?? error
      return [.log(error, .lost(MediaLoss(kind: .video, reason: .damaged, range: nil)))]
    case .failureIsDue:
      isFailureDue = failure != nil
      return []
    case .firstFrameDecoded:
      hasFirstFrame = true
      awaitsFrame = false
      return []
    case .stopped:
      isStopped = true
      return []
    }
  }

  // MARK: Queries

  /// The failure, if it can be reported now.
  var dueFailure: ReelError? { isFailureDue || !hasVideoPacket ? failure : nil }
  /// The reason why there was no frame at all.
  var emptyFailure: ReelError? { failure ?? fruitlessFailure }
  /// True after a temporary failure: a seek then discards the loaded media.
  var startsOver: Bool { failure?.isTemporary == true }
  /// Returns true if a seek of this loader is pending.
  func isSent(_ loader: Loader) -> Bool { pendingSeeks[loader] != nil }
  /// Returns true if the packets of a loader are no longer wanted.
  func isOver(_ loader: Loader) -> Bool { isStopped || loader == .audio && !wantsAudio }
  var playsSeparateAudio: Bool { wantsAudio && hasSeparateAudio == true }

  /// Returns false if the target of preloading has been reached.
  func wantsMore(of loader: Loader) -> Bool {
    guard let target else { return true }
    // Separate audio comes after the first frame.
    guard loader == .video else { return target.stage >= .buffered }
    switch target.stage {
    case .none, .manifest: return false
    case .initialization: return !hasVideoPacket
    case .firstFrame: return awaitsFrame
    case .buffered: return true
    }
  }

  /// Returns the next task of a loader; nil for none. A seek is returned once.
  mutating func assignment(of loader: Loader) -> Assignment? {
    guard !isStopped, isResolved, failure == nil, loader == .video || playsSeparateAudio else { return nil }
    return Assignment(
      seek: pendingSeeks.removeValue(forKey: loader), dropsAudio: loader == .video && !wantsAudio)
  }

  /// Starts or stops looping; returns the iterations to drop.
  ///
  /// - Parameter iteration: The current iteration. If the item no longer loops, it is the last one.
  mutating func setLoops(_ loops: Bool, iteration: Int) -> LoopIterations.Cut? {
    order.lastIteration = loops ? .max : iteration
    guard let cut = iterations.setLoops(loops, iteration: iteration, sent: Set(pendingSeeks.keys)) else {
      return nil
    }
    guard cut.ended.contains(.video), hasSeparateAudio != true else { return cut }
    return LoopIterations.Cut(
      iteration: cut.iteration, shift: cut.shift, generation: cut.generation, ended: cut.ended.union([.audio])
    )
  }

  /// Returns the tracks of all loaders, if those of one have changed.
  ///
  /// - Parameter areAll: True if no further track can appear after the first packet.
  mutating func record(
    _ tracks: [PlayerItem.Track], of loader: Loader, areAll: Bool
  ) -> (changed: [PlayerItem.Track]?, actions: [Action]) {
    if loader == .video { areAllAnnounced = areAll }
    guard self.tracks[loader] ?? [] != tracks else { return (nil, reportTracks()) }
    self.tracks[loader] = tracks
    return (Loader.allCases.flatMap { self.tracks[$0] ?? [] }, reportTracks())
  }

  // MARK: - Private

  /// The outcome of a failure after which the item plays without audio.
  private static let audioLoss = ErrorLogEntry.Outcome.lost(
    MediaLoss(kind: .audio, reason: .missing, range: nil))
  private static let wakeAll = ItemSession.LoopKind.allCases.map(Action.wake)

  private mutating func begin() -> [Action] {
    guard !hasBegun, !isStopped, target.map({ $0.stage > .none }) ?? true else { return [] }
    hasBegun = true
    return [.resolve(after: .zero)]
  }

  private mutating func seek(_ order: VideoPipeline.Order, _ reload: Set<Loader>) -> [Action] {
    self.order = order
    awaitsFrame = true
    var actions: [Action] = []
    for loader in Loader.allCases where reload.contains(loader) {
      pendingSeeks[loader] = Seek(bufferGeneration: order.bufferGeneration, time: order.target)
      actions.append(.interrupt(loader))
    }
    if let failure, failure.isTemporary || !reload.isEmpty {
      self.failure = nil
      isFailureDue = false
      retry.succeed()
      actions.append(.publishRetries(remaining: retry.remaining))
      if !isResolved { actions.append(.resolve(after: .zero)) }
    }
    return actions + Self.wakeAll
  }

  private mutating func progress(_ kind: Loader, isNews: Bool) -> [Action] {
    var actions: [Action] = []
    if kind == .video, !hasVideoPacket {
      hasVideoPacket = true
      actions.append(.reached(.initialization))
      // The first frame comes before the audio.
      if hasSeparateAudio == true { actions.append(.wake(.audioReader)) }
    }
    if isNews, retry.remaining < retry.attempts {
      retry.succeed()
      actions.append(.publishRetries(remaining: retry.remaining))
    }
    return actions
  }

  private mutating func end(_ loader: Loader, bufferGeneration: Int) -> [Action] {
    hasReadEnd.insert(loader)
    var kinds: Set<Loader> = [loader]
    if loader == .video, hasSeparateAudio != true { kinds.insert(.audio) }
    return [.endBuffer(kinds, from: loader, bufferGeneration: bufferGeneration, isBroken: false)]
      + reportTracks()
      + [.wake(.video), .wake(.audio), .wakePlayer]
  }

  private mutating func fail(_ loader: Loader, _ error: ReelError, bufferGeneration: Int, place: MediaTime?)
    -> [Action]
  {
    // The error is from a position that is no longer wanted.
    if isSent(loader) { return [.loadAgain(loader, after: .zero)] }
    var error = error
    if hasVideoPacket, error.kind == .network { error.isTemporary = true }
    if let (delay, actions) = tryAgain(after: error) {
      // Continues at the same position with a container that is opened again.
      pendingSeeks[loader] = Seek(bufferGeneration: bufferGeneration, time: place)
      return [.log(error, .retried)] + actions + [.loadAgain(loader, after: delay)]
    }
    guard loader == .video else {
      return [.log(error, Self.audioLoss)] + giveUpAudio(bufferGeneration: bufferGeneration)
    }
    failure = error
    // Show the loaded media first.
    return [
      .log(error, .failed),
      .endBuffer([.video, .audio], from: .video, bufferGeneration: bufferGeneration, isBroken: true),
      .wake(.video),
      .wake(.audio), .wakePlayer,
    ]
  }

  private mutating func giveUpAudio(bufferGeneration: Int) -> [Action] {
    wantsAudio = false
    return [.interrupt(.audio)] + reportTracks()
      + [
        .setHasSeparateAudio(false),
        .endBuffer([.audio], from: .audio, bufferGeneration: bufferGeneration, isBroken: false),
        .wake(.audio), .wakePlayer,
      ]
  }

  /// Returns the pause before the next attempt and the report of it; nil if there is none.
  private mutating func tryAgain(after error: ReelError) -> (delay: Duration, actions: [Action])? {
    guard !isStopped, let delay = retry.next(after: error) else { return nil }
    return (
      delay,
      [
        .publishRetries(remaining: retry.remaining),
        .announceRetry(
          attempt: retry.attempts - retry.remaining, of: retry.attempts, after: delay, error),
      ]
    )
  }

  private mutating func reportTracks() -> [Action] {
    guard !hasReportedTracks, areTracksKnown else { return [] }
    hasReportedTracks = true
    return [.tracksAreKnown]
  }

  /// True if no more tracks will be announced.
  private var areTracksKnown: Bool {
    guard let video = tracks[.video], !video.isEmpty else { return false }
    if !wantsAudio { return true }
    if hasSeparateAudio == true { return tracks[.audio]?.isEmpty == false || hasReadEnd.contains(.audio) }
    return areAllAnnounced || video.contains { $0.kind == .audio } || hasReadEnd.contains(.video)
  }
}
