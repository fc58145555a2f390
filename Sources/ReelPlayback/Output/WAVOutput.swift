public import ReelCore
public import ReelFFmpeg

/// Writes sound as a WAVE file: linear PCM, little-endian, at the sample rate and with the channels of the first buffer.
///
/// The file stands beside its place under a temporary name until `finish()`, and is removed where it comes to no good
/// end. Beyond 4 GiB it becomes RF64.
///
/// The sound keeps step with the frame: where `time` jumps forward, the gap is filled with silence. What jumps by less
/// than 20 ms is the rounding of timestamps, what jumps by 10 s or more, or backward, is a seek: the samples go on from
/// there without a gap. Buffers of another rate or with other channels are converted to the first's.
public final class WAVOutput: AudioOutput {
  /// How a sample is written.
  public enum SampleFormat: String, Sendable, Hashable, CaseIterable {
    /// 16-bit integers, rounded and clipped as `PCMBuffer.int16Samples` says.
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
    /// Nil when it has been finished, or given up.
    var writer: WAVWriter?
    var failure: ReelError?
  }

  private let state: Locked<State>

  /// Makes the file, under its temporary name. A named pipe or a device is written as it is: its header names no size.
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

  /// Throws `ReelError.cannotWriteOutput`, after which the file is gone and every call throws the same; and `usage`
  /// after `finish()`.
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

  /// Writes the sizes into the header, and gives the file its name. An output that nothing was written to becomes a file
  /// without samples.
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
