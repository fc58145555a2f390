import ReelCore
import ReelFFmpeg
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
  /// Returns true if a file without samples should be kept, because the played item has no audio.
  private let keepsEmpty: @Sendable () -> Bool

  /// Throws like `WAVOutput.init`.
  init(path: String, keepsEmpty: @escaping @Sendable () -> Bool) throws(ReelError) {
    state = Locked(State(wav: try WAVOutput(path: path)), rank: .recorder)
    endsWithSound = false
    self.keepsEmpty = keepsEmpty
  }

  init(pipe: OutputPipe, keepsEmpty: @escaping @Sendable () -> Bool) {
    state = Locked(State(wav: WAVOutput(pipe: pipe)), rank: .recorder)
    endsWithSound = true
    self.keepsEmpty = keepsEmpty
  }

  /// The error of writing; nil for none.
  var failure: ReelError? { state.withLock { $0.failure } }

  func write(_ buffer: PCMBuffer, at time: MediaTime) throws {
    try state.withLock { state in
      do throws(ReelError) {
        try state.wav?.write(buffer, at: time)
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

  func finish() throws {
    let keepsEmpty = keepsEmpty()
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
