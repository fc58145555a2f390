internal import ReelCore
internal import ReelFFmpeg

/// The turns of the task loop that shows frames and passes audio to outputs.
extension PlayerCore {
  /// Runs one turn: asks what is next, and performs it.
  func present() -> TaskLoop.Next {
    while true {
      let now = clock.now
      switch change({ state, out in state.next(at: now, &out) }) {
      case .show(let job, let due): show(job, due: due)
      case .passSound(let job, let time): passSound(job, until: time)
      case .again: continue
      case .wait(let deadline): return .at(deadline)
      case .rest: return .idle
      }
    }
  }

  /// Puts the next frame on show and shows it to all outputs.
  private func show(_ job: DecodingJob, due: Duration?) {
    let now = clock.now
    // Under one lock, so that neither outputs nor the item change in between.
    let new = outputLock.withLock {
      let new = change { state, out in state.take(job, due: due, at: now, &out) }
      if let new {
        show(new.frame, to: new.outputs) { $0.item.onShow.isOf(new.frame) && $0.item.videoJob === job }
      }
      return new
    }
    guard let new else { return }
    if new.beginsJob { compact(new.frame) }
    let shownAt = clock.now
    change { state, out in state.shown(new, at: shownAt, &out) }
  }

  /// Shows a frame to outputs while it is still current: an output may use the player. Call with `outputLock`
  /// held.
  func show(
    _ frame: VideoFrame, to outputs: [any FrameOutput], while isWanted: (borrowing PlayerState) -> Bool
  ) {
    for output in outputs {
      let isNext = state.read { state in isWanted(state) && state.outputs.contains { $0 === output } }
      guard isNext else { continue }
      do {
        try output.show(frame)
      } catch {
        detachFailing(output, error as? ReelError ?? ReelError(.cannotWriteOutput, "\(error)"))
      }
    }
  }

  /// Reduces the memory of the frame on show, if it is kept until the item is played, and nobody is waiting for it.
  private func compact(_ frame: VideoFrame) {
    guard state.read({ $0.restsAtFirst }), let small = frame.compacted(for: account) else { return }
    change { state, out in
      guard state.item.onShow.isOf(frame) else { return }
      out.free(frame)
      state.item.onShow.frame = small
    }
  }

  /// Passes audio that is due by `time` to outputs; nil for all decoded audio. Tells them once that it has ended.
  private func passSound(_ job: DecodingJob, until time: MediaTime?) {
    outputLock.withLock {
      while let sound = change({ state, out in state.takeSound(job, until: time, &out) }) { passSound(sound) }
      for output in change({ state, _ in state.takeSoundEnd(job) }) { output.soundEnded() }
    }
  }

  private func passSound(_ sound: NewSound) {
    guard !sound.attachments.isEmpty else { return }
    let chunk = sound.chunk
    var buffer = chunk.buffer
    buffer.scale(by: sound.volume)
    for attachment in sound.attachments {
      let output = attachment.output
      guard state.read({ $0.audioOutputs.contains { $0.output === output } }) else { continue }
      do {
        try output.write(
          TimedAudio(
            buffer, time: chunk.time - chunk.shift, outputTime: sound.outputTime - attachment.start))
      } catch {
        detachFailing(output, error as? ReelError ?? ReelError(.cannotWriteOutput, "\(error)"))
      }
    }
  }

  func detachFailing(_ output: any FrameOutput, _ error: ReelError) {
    guard change({ state, _ in state.remove(output) }) else { return }
    try? output.finish()
    emit(.outputFailed(error), of: nil)
  }

  private func detachFailing(_ output: any AudioOutput, _ error: ReelError) {
    guard change({ state, _ in state.remove(output) }) != nil else { return }
    try? output.finish()
    emit(.outputFailed(error), of: nil)
  }
}
