internal import ReelCore

/// Sound that is a stream of its own, and does not come.
extension ItemSession {
  /// Looks, while sound is being loaded, whether the picture waits for it in vain.
  func watchAudio() {
    let clock = environment.clock
    let now = clock.now
    let isNew = state.withLock { state in
      guard state.audioWatch == nil, !state.isStopped else { return false }
      state.audioCameAt = now
      return true
    }
    if isNew { lookAtAudio(at: now + environment.thresholds.audioPatience) }
  }

  private func lookAtAudio(at deadline: Duration) {
    state.withLock { state in
      guard !state.isStopped else { return }
      state.audioWatch = environment.clock.schedule(at: deadline) { [weak self] in self?.lookAtAudio() }
    }
  }

  private func lookAtAudio() {
    let patience = environment.thresholds.audioPatience
    let now = environment.clock.now
    let (came, isWanted) = state.withLock { state in
      state.audioWatch = nil
      return (state.audioCameAt, !state.isStopped && state.failure == nil && state.wantsAudio)
    }
    // The next turn of its loader begins to watch again.
    guard isWanted, buffer.isLoadingAudio else { return }
    guard now - came >= patience else { return lookAtAudio(at: came + patience) }
    // What was loaded before may last for a while.
    guard buffer.isHeldUpByAudio else { return lookAtAudio(at: now + patience / 10) }
    let seconds = Int((now - came) / .seconds(1))
    noteFailure(
      ReelError(.timedOut, "no sound has come for \(seconds) s: it is left out", at: item.source.name),
      rung: "")
    playWithoutAudio(epoch: buffer.loadEpoch(of: .audio))?.cancel()
  }

  /// Gives what ends the reads of its loader.
  @discardableResult
  func playWithoutAudio(epoch: Int) -> LoadScope? {
    let scope = state.withLock { state in
      state.wantsAudio = false
      return state.scopes[.audio]
    }
    buffer.setHasSeparateAudio(false)
    buffer.end([.audio], from: .audio, epoch: epoch)
    pumps.wake(.audio)
    delegate.wake()
    return scope
  }
}
