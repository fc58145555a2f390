public import ReelCore

/// An output that writes frames as YUV4MPEG2: samples as decoded, turned upright.
///
/// Size, pixel format, aspect ratio and frame rate are those of the first frame. Later frames that differ, such as
/// those of another rung, are converted and scaled to match, with black bars if their shape differs. HDR is not tone mapped.
///
/// YUV4MPEG2 has no timestamps: the header's rate gives each frame its time. So a frame is written at the place that is
/// nearest to its ``TimedFrame/outputTime``, and repeated until the next one: over holes, dropped frames and at variable
/// rates. Of two frames at one place, the first is written. The file begins with the first frame, and is in step with that of a
/// ``WAVOutput`` of the same player. If the first frame's duration shows that the stream's rate is only an average below
/// 25, the header has a multiple of the frame's own rate instead.
public final class Y4MOutput: FrameOutput {
  /// True.
  public let isExternal = true
  private let state: Locked<State>

  private struct State {
    /// Nil once the output was finished or has failed.
    var sequence: Y4MSequence?
    /// When playback has ended, in output time.
    var end: MediaTime?
  }

  /// Creates an output that writes to a file.
  ///
  /// The file is written under a temporary name and gets its own name from ``finish()``; without any frame there is no
  /// file. An existing named pipe or device at `path` is written to directly. Opening a named pipe waits for its
  /// reader.
  ///
  /// Throws `ReelError.cannotCreateOutput`.
  public convenience init(path: String) throws(ReelError) {
    self.init(try OutputFile(path: path))
  }

  private init(_ file: sending OutputFile) {
    state = Locked(State(sequence: Y4MSequence(to: file)), rank: .writer)
  }

  /// Creates an output that writes to the process's standard output.
  ///
  /// If the reader closes the pipe, ``show(_:)`` throws, provided that the process ignores SIGPIPE. Otherwise the
  /// signal ends the process.
  public static func standardOutput() -> Y4MOutput { Y4MOutput(.standardOutput()) }

  /// Writes a frame at its place, after repetitions of the one before it.
  ///
  /// Throws `ReelError`:
  /// - `cannotWriteOutput` if writing fails. The file is removed.
  /// - `unsupported` if YUV4MPEG2 has no name for the frame's pixel format, or if the frame can't be converted to match
  ///   the first one. Earlier frames are kept.
  /// - `usage` after ``finish()`` or a failed write.
  public func show(_ frame: borrowing TimedFrame) throws {
    let box = SharedFrame(try frame.clone())
    try state.withLock { state in
      guard state.sequence != nil else {
        throw ReelError(.usage, "the output has ended and can't show frames")
      }
      do throws(ReelError) {
        try state.sequence?.write(box.frame)
      } catch {
        if error.kind == .cannotWriteOutput { state.sequence = nil }
        throw error
      }
    }
  }

  /// Takes note of the end, up to which ``finish()`` repeats the last frame.
  public func ended(at outputTime: MediaTime) { state.withLock { $0.end = outputTime } }

  /// Ends the file and gives it its name. Does nothing in a second call, or after a frame could not be written.
  ///
  /// Throws `ReelError.cannotWriteOutput` or `cannotCreateOutput`.
  public func finish() throws {
    try state.withLock { state in
      defer { state.sequence = nil }
      try state.sequence?.finish(at: state.end)
    }
  }
}
