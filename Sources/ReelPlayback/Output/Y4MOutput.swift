public import ReelCore

/// An output that writes frames as YUV4MPEG2: samples as decoded, turned upright.
///
/// Size, pixel format, aspect ratio and frame rate are those of the first frame. Later frames that differ, such as
/// those of another rung, are converted and scaled to match, with black bars if their shape differs. YUV4MPEG2 has no
/// timestamps: the frames follow each other at the header's rate, whatever their times are. HDR is not tone mapped.
public final class Y4MOutput: FrameOutput {
  /// True.
  public let isExternal = true
  private let state: Locked<State>

  private struct State {
    /// Nil once the output was finished or has failed.
    var writer: Y4MWriter?
    var hasFrames = false
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

  /// Writes to a pipe with its own thread.
  package convenience init(pipe: OutputPipe) { self.init(.pipe(pipe)) }

  private init(_ file: sending OutputFile) {
    state = Locked(State(writer: Y4MWriter(to: file, change: .converts)), rank: .writer)
  }

  /// Creates an output that writes to the process's standard output.
  ///
  /// If the reader closes the pipe, ``show(_:)`` throws, provided that the process ignores SIGPIPE. Otherwise the
  /// signal ends the process.
  public static func standardOutput() -> Y4MOutput { Y4MOutput(.standardOutput()) }

  /// Writes a frame.
  ///
  /// Throws `ReelError`:
  /// - `cannotWriteOutput` if writing fails. The file is removed.
  /// - `unsupported` if YUV4MPEG2 has no name for the frame's pixel format, or if the frame can't be converted to match
  ///   the first one. Earlier frames are kept.
  /// - `usage` after ``finish()`` or a failed write.
  public func show(_ frame: borrowing TimedFrame) throws {
    let box = SharedFrame(try frame.clone())
    try state.withLock { state in
      guard let writer = state.writer else {
        throw ReelError(.usage, "the output has ended and can't show frames")
      }
      do throws(ReelError) {
        _ = try writer.write(box.frame)
        state.hasFrames = true
      } catch {
        if error.kind == .cannotWriteOutput { state.writer = nil }
        throw error
      }
    }
  }

  /// Ends the file and gives it its name. Does nothing in a second call, or after a frame could not be written.
  ///
  /// Throws `ReelError.cannotWriteOutput` or `cannotCreateOutput`.
  public func finish() throws {
    try state.withLock { state in
      let writer = state.writer
      state.writer = nil
      if state.hasFrames { try writer?.finish() }
    }
  }
}
