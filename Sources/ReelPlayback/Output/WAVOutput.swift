public import ReelCore
public import ReelFFmpeg

/// An output that writes audio as a WAVE file: little-endian linear PCM with the sample rate and channels of the first
/// buffer.
///
/// The file has a temporary name until ``finish()``, and is removed if writing fails. Beyond 4 GiB it becomes RF64.
///
/// A forward jump of the timeline is filled with silence, so that audio stays in step with video. Jumps of up to 20 ms
/// are rounding of timestamps and are ignored. Forward jumps of 10 s or more and backward jumps are seeks, and leave no
/// gap. Buffers with another sample rate or other channels are converted to those of the first.
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

  /// Writes to a pipe with its own thread.
  package init(pipe: OutputPipe) {
    state = Locked(State(writer: WAVWriter(file: .pipe(pipe), sampleFormat: .int16)), rank: .writer)
  }

  /// Writes samples at their time on the timeline.
  ///
  /// Throws `ReelError`:
  /// - `cannotWriteOutput` if writing fails, or `unsupported` if the samples can't be converted. The file is removed,
  ///   and later calls throw the same error.
  /// - `usage` after ``finish()``.
  public func write(_ buffer: PCMBuffer, at time: MediaTime) throws(ReelError) {
    try state.withLock { state throws(ReelError) in
      if let failure = state.failure { throw failure }
      guard state.writer != nil else { throw ReelError(.usage, "the output has been finished") }
      do throws(ReelError) {
        try state.writer?.write(buffer, at: time)
      } catch {
        state = State(failure: error)
        throw error
      }
    }
  }

  /// Writes the sizes into the header and gives the file its name. Without any samples the file is a valid, empty one.
  ///
  /// Throws `ReelError.cannotWriteOutput` or `cannotCreateOutput`, or the error of an earlier ``write(_:at:)``.
  public func finish() throws(ReelError) {
    try state.withLock { state throws(ReelError) in
      if let failure = state.failure { throw failure }
      do throws(ReelError) {
        try state.writer?.finish()
        state = State()
      } catch {
        state = State(failure: error)
        throw error
      }
    }
  }
}
