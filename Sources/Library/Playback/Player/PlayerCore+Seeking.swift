internal import ReelCore

/// Seeking within the item.
extension PlayerCore {
  private struct Begun {
    /// The pending seek that this one ends.
    let old: PendingSeek?
    let item: PlayerItem
    /// The position of a stall that this seek ends.
    var stalledTime: MediaTime?
    var stallLength: Duration = .zero
    let session: ItemSession
    let consequences: ItemSession.Consequences
  }

  /// Starts a seek; returns false if it can't. A seek retries a failed item if the failure is temporary.
  ///
  /// - Parameters:
  ///   - plays: Playback is requested with the seek: the item may end before it could be requested afterwards.
  ///   - isWanted: Called with the state locked. If it returns false, nothing happens.
  @discardableResult
  func begin(
    seekTo time: MediaTime, tolerance: MediaTime, continuation: CheckedContinuation<Bool, any Error>?,
    plays: Bool = false, where isWanted: (State) -> Bool = { _ in true }
  ) -> Bool {
    let now = clock.now
    let outcome = state.withLock { state -> Result<Begun, ReelError> in
      guard let session = state.session, isWanted(state) else {
        return .failure(ReelError(.usage, "there is no item to seek in"))
      }
      let name = session.item.source.name
      if continuation != nil, state.settings.isLinear {
        return .failure(ReelError(.usage, "seeking is refused: playback is linear", at: name))
      }
      if let failure = session.failure, !failure.isTemporary { return .failure(failure) }
      guard session.streams.canSeek else {
        return .failure(ReelError(.unsupported, "this source is not seekable", at: name))
      }
      let stalledTime = state.stalledAt.map { _ in state.itemTime(at: now) }
      let (generation, target, consequences) = session.seek(
        to: state.target(of: time, duration: session.item.duration.value), tolerance: tolerance,
        iteration: state.lastSpan?.loop.iteration ?? 0)
      var begun = Begun(
        old: state.seek, item: session.item, stalledTime: stalledTime, session: session,
        consequences: consequences)
      if continuation != nil, let distances = session.liveDistances(from: target) {
        // After a seek back within the window, playback stays at that distance.
        state.liveTarget = max(distances.latency, distances.target)
      }
      state.seek = continuation.map {
        PendingSeek(generation: generation, time: target, began: now, continuation: $0)
      }
      // Media skipped by the player itself is reported as skipped.
      let skipsFrom = continuation == nil ? state.lastEnd ?? state.skipsFrom : nil
      let ownEnd = continuation == nil ? state.ownEnd : nil
      state.begin(generation: generation, at: target)
      state.skipsFrom = skipsFrom
      state.ownEnd = ownEnd
      state.hasJumped = ownEnd != nil
      if case .failed = session.item.status.value { session.item.status.set(.unknown) }
      state.follow(state.machine.handle(.seekBegan), now: now)
      if plays { state.follow(state.machine.handle(.play), now: now) }
      begun.stallLength = state.lastStall
      return .success(begun)
    }
    switch outcome {
    case .failure(let error):
      continuation?.resume(throwing: error)
      return false
    case .success(let begun):
      begun.session.perform(begun.consequences)
      begun.old?.continuation.resume(returning: false)
      if let time = begun.stalledTime { emit(.resumed(time: time, after: begun.stallLength), of: begun.item) }
      publish()
      wake()
      return true
    }
  }

  /// True if the item has ended and `play()` would restart it.
  var canRewind: Bool {
    state.withLock { $0.startsOver ? $0.session : nil }?.streams.canSeek ?? false
  }

  /// Returns an item that has ended to its beginning, without playing it. Returns false if it can't.
  func rewind() -> Bool {
    begin(seekTo: .zero, tolerance: .zero, continuation: nil) { $0.startsOver }
  }

  /// Plays an item that has ended from the beginning, if it can be sought. Returns false if it has not ended.
  func restartIfEnded() -> Bool {
    guard state.withLock({ $0.startsOver }) else { return false }
    if begin(seekTo: .zero, tolerance: .zero, continuation: nil, plays: true, where: \.startsOver) {
      return true
    }
    // It can't be sought, unless another caller has restarted it.
    return state.withLock { $0.startsOver }
  }
}
