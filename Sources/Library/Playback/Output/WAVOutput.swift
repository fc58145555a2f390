public import ReelCore
internal import ReelFFmpeg

/// An output that writes audio as a WAVE file: little-endian linear PCM with the sample rate and channels of the first
/// buffer.
///
/// The file has a temporary name until ``finish()``, and is removed if writing fails. Beyond 4 GiB it becomes RF64.
///
/// Audio is written at its ``TimedAudio/outputTime``, so that the file begins when the picture does, and is in step with that
/// of a ``Y4MOutput`` of the same player: what is missing or muted is silence, and audio before the first frame is left out.
/// If audio ends before the picture, silence follows. Distances of up to 10 ms, and 3 ms on average, are rounding of timestamps
/// and are ignored. Buffers with another sample rate or other channels are converted to those of the first.
public final class WAVOutput: AudioOutput {
  /// The format of the samples.
  public enum SampleFormat: String, Sendable, Hashable, CaseIterable {
    /// 16-bit integers, converted as by `PCMBuffer.int16Samples`.
    case int16
    /// 32-bit floating point, as decoded.
    case float32

    var byteCount: Int {
      switch self {
      case .int16: 2
      case .float32: 4
      }
    }
  }

  private struct State {
    /// Nil once the output was finished or has failed.
    var writer: WAVWriter?
    var failure: ReelError?
    /// When playback has ended, in output time.
    var end: MediaTime?
  }

  private let state: Locked<State>

  /// Creates the file, under a temporary name.
  ///
  /// An existing named pipe or device at `path` is written to directly, with no sizes in the header. Opening a named
  /// pipe waits for its reader.
  ///
  /// Throws `ReelError.cannotCreateOutput`.
  public init(path: String, sampleFormat: SampleFormat = .int16) throws(ReelError) {
    state = Locked(
      State(writer: WAVWriter(file: try OutputFile(path: path), sampleFormat: sampleFormat)), rank: .writer)
  }

  /// Writes samples at their output time.
  ///
  /// Throws `ReelError`:
  /// - `cannotWriteOutput` if writing fails, or `unsupported` if the samples can't be converted. The file is removed,
  ///   and later calls throw the same error.
  /// - `usage` after ``finish()``.
  public func write(_ audio: TimedAudio) throws(ReelError) {
    try state.withLock { state throws(ReelError) in
      if let failure = state.failure { throw failure }
      guard state.writer != nil else { throw ReelError(.usage, "the output has been finished") }
      do throws(ReelError) {
        try state.writer?.write(audio.buffer, at: audio.outputTime)
      } catch {
        state = State(failure: error)
        throw error
      }
    }
  }

  /// Takes note of the end, up to which ``finish()`` adds silence.
  public func ended(at outputTime: MediaTime) { state.withLock { $0.end = outputTime } }

  /// Writes the sizes into the header and gives the file its name. Without any samples the file is a valid, empty one.
  ///
  /// Throws `ReelError.cannotWriteOutput` or `cannotCreateOutput`, or the error of an earlier ``write(_:)``.
  public func finish() throws(ReelError) {
    try state.withLock { state throws(ReelError) in
      if let failure = state.failure { throw failure }
      do throws(ReelError) {
        try state.writer?.finish(at: state.end)
        state = State()
      } catch {
        state = State(failure: error)
        throw error
      }
    }
  }
}
