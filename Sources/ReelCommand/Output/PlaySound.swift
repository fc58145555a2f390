import ReelCore
import ReelPlayback

/// The audio that `reel play` writes: a `WAVOutput` that keeps its failure, and leaves no file if nothing was
/// played.
final class PlaySound: AudioOutput {
  private struct State {
    /// Nil once it has been finished or has failed.
    var wav: WAVOutput?
    var isEmpty = true
    var failure: ReelError?
  }

  private let state: Locked<State>
  /// True for a pipe, which is closed as soon as the audio ends: its reader may wait for that before it reads
  /// more frames.
  private let endsWithSound: Bool
  /// The frames that the audio belongs to.
  private let frames: PlayFrames

  /// Throws like `WAVOutput.init`.
  init(path: String, of frames: PlayFrames) throws(ReelError) {
    state = Locked(State(wav: try WAVOutput(path: path)), rank: .recorder)
    endsWithSound = false
    self.frames = frames
  }

  init(pipe: OutputPipe, of frames: PlayFrames) {
    state = Locked(State(wav: WAVOutput(pipe: pipe)), rank: .recorder)
    endsWithSound = true
    self.frames = frames
  }

  /// The error of writing; nil for none.
  var failure: ReelError? { state.withLock { $0.failure } }

  func write(_ audio: TimedAudio) throws {
    try state.withLock { state in
      do throws(ReelError) {
        try state.wav?.write(audio)
        state.isEmpty = false
      } catch {
        state.failure = error
        throw error
      }
    }
  }

  func soundEnded() {
    // `finish()` keeps its error in `failure`.
    if endsWithSound { try? finish() }
  }

  func ended(at outputTime: MediaTime) {
    let end = frames.wantedEnd(outputTime)
    state.withLock { $0.wav?.ended(at: end) }
  }

  func finish() throws {
    // A file without samples: the item has frames, but no audio.
    let keepsEmpty = frames.account.shownCount > 0
    try state.withLock { state in
      defer { state.wav = nil }
      guard state.failure == nil, !state.isEmpty || keepsEmpty else { return }
      do throws(ReelError) { try state.wav?.finish() } catch {
        state.failure = error
        throw error
      }
    }
  }
}
