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
    /// The buffer has moved to a time; the loaders in `reload` must follow.
    case sought(MediaTime, reload: Set<Loader>)
    /// The audio was dropped. If it is wanted, it is loaded again from `place`.
    case audioWanted(Bool, place: MediaTime?)
    /// A packet was read.
    ///
    /// - isNews: True if it comes after all packets loaded so far.
    case packetRead(Loader, isNews: Bool)
    /// A loader has reached the end of the item.
    case ended(Loader, fault: ReelError?)
    /// A loader failed at `place`.
    case failed(Loader, ReelError, place: MediaTime?)
    /// Separate audio has been missing for too long.
    case audioMissed(ReelError)
    case decodingFailed(ReelError)
    /// A span ended without any frame.
    case spanWasFruitless(ReelError)
    /// The loaded media has been shown.
    case failureIsDue
    /// The first frame, or the first since a seek, is on show.
    case firstFrameShown
    case stopped
  }

  enum Action: Sendable, Equatable {
    /// Resolves the source after a pause.
    case resolve(after: Duration)
    /// Interrupts a loader, which begins again at a time on the player's timeline; nil for the beginning.
    case restart(Loader, at: MediaTime?)
    /// The loader begins again at a time after a pause. What it has loaded is kept.
    case loadAgain(Loader, at: MediaTime?, after: Duration)
    case wake(Workers)
    case fillBuffer
    /// No more packets of these kinds follow.
    case endBuffer(Set<Loader>, isBroken: Bool)
    case setHasSeparateAudio(Bool)
    case reached(PreloadStage)
    case log(ReelError, ErrorLogEntry.Outcome)
    case publishRetries(remaining: Int)
    case announceRetry(attempt: Int, of: Int, after: Duration, ReelError)
    /// No more tracks will be announced.
    case tracksAreKnown
  }

  private(set) var target: PreloadTarget?
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
  private var tracks: [Loader: [PlayerItem.Track]] = [:]
  private var areAllAnnounced = false
  /// The loaders that have read to the end. They announce no more tracks.
  private var hasReadEnd: Set<Loader> = []
  private var hasReportedTracks = false

  init(target: PreloadTarget?, wantsAudio: Bool, loops: Bool, retry: ItemRetryPolicy) {
    self.target = target
    self.wantsAudio = wantsAudio
    self.retry = retry
    iterations = LoopIterations(loops: loops)
  }

  mutating func handle(_ event: Event) -> [Action] {
    switch event {
    case .began:
      return begin()
    case .targetChanged(let target):
      guard self.target != target else { return [] }
      self.target = target
      return begin() + [.fillBuffer, .wake(.loading)]
    case .resolved:
      isResolved = true
      return [.reached(.manifest), .wake(.reader)]
    case .resolvingFailed(let error):
      guard !isStopped else { return [] }
      guard let (delay, actions) = tryAgain(after: error) else {
        failure = error
        return [.log(error, .failed), .wake(.presenter)]
      }
      return [.log(error, .retried)] + actions + [.resolve(after: delay)]
    case .opened(let hasSeparateAudio):
      self.hasSeparateAudio = hasSeparateAudio
      return []
    case .sought(let time, let reload):
      return seek(to: time, reload)
    case .audioWanted(let wants, let place):
      wantsAudio = wants
      return [.restart(.audio, at: place)] + reportTracks()
        + [.setHasSeparateAudio(wants && hasSeparateAudio == true), .wake(.loading)]
    case .packetRead(let kind, let isNews):
      return progress(kind, isNews: isNews)
    case .ended(let loader, let fault):
      if let fault { failure = failure ?? fault }
      return (fault.map { [.log($0, .failed)] } ?? []) + end(loader)
    case .failed(let loader, let error, let place):
      return fail(loader, error, place: place)
    case .audioMissed(let error):
      return [.log(error, Self.audioLoss)] + giveUpAudio()
    case .decodingFailed(let error):
      failure = error
      return [.log(error, .failed), .wake(.presenter)]
    case .spanWasFruitless(let error):
      fruitlessFailure = fruitlessFailure ?? error
      return [.log(error, .lost(MediaLoss(kind: .video, reason: .damaged, range: nil)))]
    case .failureIsDue:
      isFailureDue = failure != nil
      return []
    case .firstFrameShown:
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
  /// Returns true if the packets of a loader are no longer wanted.
  func isOver(_ loader: Loader) -> Bool { isStopped || loader == .audio && !wantsAudio }
  var playsSeparateAudio: Bool { wantsAudio && hasSeparateAudio == true }

  /// Returns false if a loader has nothing to do: its source is not known, it is not needed, or the target of
  /// preloading has been reached.
  func wantsMore(of loader: Loader) -> Bool {
    guard !isStopped, isResolved, failure == nil, loader == .video || playsSeparateAudio else { return false }
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

  /// Starts or stops looping; returns the iterations to drop.
  ///
  /// - Parameter iteration: The current iteration. If the item no longer loops, it is the last one.
  mutating func setLoops(_ loops: Bool, iteration: Int) -> LoopIterations.Cut? {
    guard var cut = iterations.setLoops(loops, iteration: iteration) else { return nil }
    cut.ended = cut.ahead
    if cut.ahead.contains(.video), hasSeparateAudio != true { cut.ended.insert(.audio) }
    return cut
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

  private mutating func begin() -> [Action] {
    guard !hasBegun, !isStopped, target.map({ $0.stage > .none }) ?? true else { return [] }
    hasBegun = true
    return [.resolve(after: .zero)]
  }

  private mutating func seek(to time: MediaTime, _ reload: Set<Loader>) -> [Action] {
    awaitsFrame = true
    var actions = Loader.allCases.filter(reload.contains).map { Action.restart($0, at: time) }
    if let failure, failure.isTemporary || !reload.isEmpty {
      self.failure = nil
      isFailureDue = false
      retry.succeed()
      actions.append(.publishRetries(remaining: retry.remaining))
      if !isResolved { actions.append(.resolve(after: .zero)) }
    }
    return actions + [.wake(.loading)]
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

  private mutating func end(_ loader: Loader) -> [Action] {
    hasReadEnd.insert(loader)
    var kinds: Set<Loader> = [loader]
    if loader == .video, hasSeparateAudio != true { kinds.insert(.audio) }
    return [.endBuffer(kinds, isBroken: false)] + reportTracks() + [.wake([.video, .audio, .presenter])]
  }

  private mutating func fail(_ loader: Loader, _ error: ReelError, place: MediaTime?) -> [Action] {
    var error = error
    if hasVideoPacket, error.kind == .network { error.isTemporary = true }
    if let (delay, actions) = tryAgain(after: error) {
      // Continues at the same position with a container that is opened again.
      return [.log(error, .retried)] + actions + [.loadAgain(loader, at: place, after: delay)]
    }
    guard loader == .video else { return [.log(error, Self.audioLoss)] + giveUpAudio() }
    failure = error
    // Show the loaded media first.
    return [
      .log(error, .failed), .endBuffer([.video, .audio], isBroken: true),
      .wake([.video, .audio, .presenter]),
    ]
  }

  private mutating func giveUpAudio() -> [Action] {
    wantsAudio = false
    return [.restart(.audio, at: nil)] + reportTracks()
      + [.setHasSeparateAudio(false), .endBuffer([.audio], isBroken: false), .wake([.audio, .presenter])]
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
