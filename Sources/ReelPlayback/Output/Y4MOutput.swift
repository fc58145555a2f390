public import ReelCore

/// Writes frames as YUV4MPEG2, one after the other: samples as decoded, turned upright.
///
/// Size, pixel format, aspect ratio and frame rate are those of the first frame. Later frames that are unlike it,
/// as those of another rung, are made like it: scaled, between black bars where their shape is another. The frames
/// follow each other at the header's rate, whatever their times are. HDR is not tone mapped.
public final class Y4MOutput: FrameOutput {
  public let isExternal = true
  private let state: Locked<State>

  private struct State {
    /// Nil when nothing can be written any more.
    var writer: Y4MWriter?
    var hasFrames = false
  }

  /// A file that is there, with its name, when the output is finished; no file where no frame came. A named pipe or
  /// a device at `path` is written to as it stands; a pipe waits here for its reader.
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

  /// Writes to the process's standard output. A reader that is gone is an error of `show(_:)` where the process ignores
  /// SIGPIPE; where it does not, the signal ends it.
  public static func standardOutput() -> Y4MOutput { Y4MOutput(.standardOutput()) }

  /// Throws `ReelError.cannotWriteOutput`, after which there is no file; `unsupported` for a frame that Y4M has no
  /// name for, or that can't be made like the first: those before it stay.
  public func show(_ frame: borrowing TimedFrame) throws {
    let box = SharedFrame(try frame.clone())
    try state.withLock { state in
      guard let writer = state.writer else {
        throw ReelError(.usage, "an output shows no frames after its end")
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

  /// Throws `ReelError.cannotWriteOutput` or `cannotCreateOutput`. Does nothing where it was called before, or a
  /// frame could not be written.
  public func finish() throws {
    try state.withLock { state in
      let writer = state.writer
      state.writer = nil
      if state.hasFrames { try writer?.finish() }
    }
  }
}
