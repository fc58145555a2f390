internal import ReelCore

/// Detects a separate audio stream that does not arrive.
extension ItemSession {
  /// Starts to check, while audio is being loaded, whether playback waits for it without result.
  func watchAudio() {
    let (now, patience) = (environment.clock.now, environment.thresholds.audioPatience)
    let deadline = change { state, _ -> Duration? in
      guard state.audioWatch == nil, !state.machine.isStopped else { return nil }
      state.audioAbsence.end(at: now)
      return state.audioAbsence.nextLook(after: now, patience: patience)
    }
    if let deadline { lookAtAudio(at: deadline) }
  }

  private func lookAtAudio(at deadline: Duration) {
    let runtime = environment.runtime
    change { state, _ in
      guard !state.machine.isStopped else { return }
      state.audioWatch = environment.clock.schedule(at: deadline) { [weak self] in
        // Runs on the same executor as the loading tasks, so it has the same delays.
        runtime.task { [weak self] in self?.lookAtAudio(due: deadline) }
      }
    }
  }

  private func lookAtAudio(due: Duration) {
    let patience = environment.thresholds.audioPatience
    let now = environment.clock.now
    // Audio that was loaded earlier may last for a while.
    let isAbsent = state.read { $0.packets.position }.map { absentKinds(at: $0).contains(.audio) } ?? false
    let next = change { state, out -> Duration? in
      state.audioWatch = nil
      state.audioAbsence.count(to: due, now: now)
      // Watching restarts with the next turn of its reader.
      guard !state.machine.isOver(.audio), state.machine.failure == nil, state.packets.isLoadingAudio else {
        return nil
      }
      let absence = state.audioAbsence
      guard absence.length >= patience, state.packets.isHeldUpByAudio, !isAbsent else {
        return absence.nextLook(after: now, patience: patience)
      }
      let seconds = Int((now - absence.since) / .seconds(1))
      let error = ReelError(
        .timedOut, "no audio has arrived for \(seconds) s: playback continues without it",
        at: item.source.name)
      state.decide(.audioMissed(error), &out)
      return nil
    }
    if let next { lookAtAudio(at: next) }
  }
}
