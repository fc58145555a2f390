import ReelCore
import ReelPlayback

/// The audio that `reel play` writes: an output that keeps its failure, and leaves no file if nothing was played.
final class PlaySound: AudioOutput {
  private struct State {
    /// Nil once it has been finished or has failed.
    var output: (any AudioOutput)?
    var isEmpty = true
    var failure: ReelError?
  }

  private let state: Locked<State>
  /// The frames that the audio belongs to.
  private let frames: PlayFrames

  init(_ output: any AudioOutput, of frames: PlayFrames) {
    state = Locked(State(output: output), rank: .recorder)
    self.frames = frames
  }

  /// The error of writing; nil for none.
  var failure: ReelError? { state.withLock { $0.failure } }

  func write(_ audio: TimedAudio) throws {
    try state.withLock { state in
      do {
        try state.output?.write(audio)
        state.isEmpty = false
      } catch {
        state.failure = error.asReelError
        throw error
      }
    }
  }

  func soundEnded() { state.withLock { $0.output?.soundEnded() } }

  func ended(at outputTime: MediaTime) {
    let end = frames.wantedEnd(outputTime)
    state.withLock { $0.output?.ended(at: end) }
  }

  func finish() throws {
    // A file without samples: the item has frames, but no audio.
    let keepsEmpty = frames.account.shownCount > 0
    try state.withLock { state in
      defer { state.output = nil }
      guard state.failure == nil, !state.isEmpty || keepsEmpty else { return }
      do { try state.output?.finish() } catch {
        state.failure = error.asReelError
        throw error
      }
    }
  }
}
