internal import ReelCore

/// Going to another time of the item.
extension PlayerCore {
  private struct Begun {
    /// The seek that this one ends.
    let old: PendingSeek?
    let item: PlayerItem
    /// Where a stall was that this one ends.
    var stalledTime: MediaTime?
    var stallLength: Duration = .zero
    let session: ItemSession
    let consequences: ItemSession.Consequences
  }

  /// True where it has begun. A failed item is tried again where its failure may pass.
  ///
  /// - Parameter isWanted: asked with the state locked; nothing is done where it says false.
  @discardableResult
  func begin(
    seekTo time: MediaTime, tolerance: MediaTime, continuation: CheckedContinuation<Bool, any Error>?,
    where isWanted: (State) -> Bool = { _ in true }
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
        return .failure(ReelError(.unsupported, "this source can't be sought", at: name))
      }
      let stalledTime = state.stalledAt.map { _ in state.itemTime(at: now) }
      let (generation, target, consequences) = session.seek(
        to: state.target(of: time, duration: session.item.duration.value), tolerance: tolerance,
        iteration: state.lastSpan?.loop.iteration ?? 0)
      var begun = Begun(
        old: state.seek, item: session.item, stalledTime: stalledTime, session: session,
        consequences: consequences)
      if continuation != nil, let distances = session.liveDistances(from: target) {
        // Who goes back in the window stays there.
        state.liveTarget = max(distances.latency, distances.target)
      }
      state.seek = continuation.map {
        PendingSeek(generation: generation, time: target, began: now, continuation: $0)
      }
      // Media that the player skips by itself is reported as skipped.
      let skipsFrom = continuation == nil ? state.lastEnd ?? state.skipsFrom : nil
      state.begin(generation: generation, at: target)
      state.skipsFrom = skipsFrom
      if case .failed = session.item.status.value { session.item.status.set(.unknown) }
      state.follow(state.machine.handle(.seekBegan), now: now)
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

  /// Playing on after the end begins at the beginning. False where the item has not ended.
  func restartIfEnded() -> Bool {
    guard state.withLock({ $0.hasEnded && $0.settings.actionAtItemEnd != .none }) else { return false }
    if begin(seekTo: .zero, tolerance: .zero, continuation: nil) { apply { $0.machine.handle(.play) } }
    return true
  }
}
