public import ReelCore
public import ReelFFmpeg
public import ReelReading

/// A destination for a player's frames. It can be attached and detached during playback.
public protocol FrameOutput: AnyObject, Sendable {
  /// Whether the output shows frames outside of the process, such as in a file or a pipe. A player refuses it unless
  /// ``Player/allowsExternalPlayback`` is true.
  var isExternal: Bool { get }

  /// Shows a frame. The player calls this with each frame when it is due, on one thread at a time.
  ///
  /// You can keep the frame; it holds its memory. A call that takes long makes later frames late. If it throws, the
  /// player detaches the output and sends ``PlayerEvent/outputFailed(_:)``.
  func show(_ frame: VideoFrame) throws

  /// Called before ``finish()`` with the end of the frames and the audio passed to outputs, in
  /// `VideoFrame.outputTime`. The last frame was on show until then.
  func ended(at outputTime: MediaTime)

  /// Ends the output. The player calls this once, when it has detached the output; no frames follow.
  func finish() throws
}

extension FrameOutput {
  /// Does nothing.
  public func ended(at outputTime: MediaTime) {}
}

/// A destination for a player's audio. It can be attached and detached during playback.
public protocol AudioOutput: AnyObject, Sendable {
  /// Receives samples when they are due, in order, on one thread at a time. The player's volume is already applied. At another
  /// rate than 1 they come faster or slower, but are not stretched.
  ///
  /// If it throws, the player detaches the output and sends ``PlayerEvent/outputFailed(_:)``.
  func write(_ audio: TimedAudio) throws

  /// Called before ``finish()`` with the end of the frames and the audio passed to outputs, in
  /// ``TimedAudio/outputTime``.
  func ended(at outputTime: MediaTime)

  /// Ends the output: no samples follow. A second call must have no effect.
  func finish() throws

  /// Called when all audio of the item has been written. Frames may still follow. More audio follows only if the
  /// player seeks or gets another item.
  func soundEnded()
}

extension AudioOutput {
  /// Does nothing.
  public func ended(at outputTime: MediaTime) {}

  /// Does nothing.
  public func soundEnded() {}
}

/// An output that only counts frames.
package final class NullOutput: FrameOutput {
  private struct State {
    var frameCount = 0
    var lastTime: MediaTime?
  }

  /// False.
  package let isExternal = false
  private let state = Locked(State())

  /// Creates an output that has counted no frames.
  package init() {}

  /// The number of frames received.
  package var frameCount: Int { state.withLock { $0.frameCount } }

  /// The time of the last frame, on the item's timeline. Nil before the first frame.
  package var lastTime: MediaTime? { state.withLock { $0.lastTime } }

  /// Counts the frame.
  package func show(_ frame: VideoFrame) {
    let time = frame.time
    state.withLock { state in
      state.frameCount += 1
      state.lastTime = time
    }
  }

  /// Does nothing.
  package func finish() {}
}

/// An output that passes each frame to a closure.
public final class CallbackOutput: FrameOutput {
  /// Whether the closure shows frames outside of the process.
  public let isExternal: Bool
  private let onFrame: @Sendable (VideoFrame) throws -> Void
  private let onFinish: @Sendable () throws -> Void
  private let isFinished = Locked(false)

  /// Creates an output.
  ///
  /// - Parameters:
  ///   - isExternal: Whether the closure shows frames outside of the process.
  ///   - onFinish: Called once, when no more frames follow.
  ///   - onFrame: Called with each frame when it is due, on one thread at a time. You can keep the frame; it holds its
  ///     memory. If it throws, the player detaches the output.
  public init(
    isExternal: Bool = false, onFinish: @escaping @Sendable () throws -> Void = {},
    onFrame: @escaping @Sendable (VideoFrame) throws -> Void
  ) {
    self.isExternal = isExternal
    self.onFrame = onFrame
    self.onFinish = onFinish
  }

  /// Calls the closure with the frame. Throws the closure's error.
  public func show(_ frame: VideoFrame) throws { try onFrame(frame) }

  /// Calls `onFinish`, the first time only. Throws its error.
  public func finish() throws {
    let wasFinished = isFinished.withLock { value in
      defer { value = true }
      return value
    }
    if !wasFinished { try onFinish() }
  }
}

/// Decoded audio with its time on the timeline.
public struct TimedAudio: Sendable {
  /// The samples. Use ``time`` instead of the buffer's own ticks.
  public let buffer: PCMBuffer
  /// The time of the first sample, on the item's timeline. It jumps at seeks and loops.
  public let time: MediaTime
  /// The time of the first sample since the frame that was on show when the output was attached, or since the
  /// first frame if there was none. It continues over loops and seeks, like `VideoFrame.outputTime`, and is
  /// negative for audio before that frame.
  public let outputTime: MediaTime

  /// Creates audio with its time. By default, the output time is `time` too.
  package init(_ buffer: PCMBuffer, time: MediaTime, outputTime: MediaTime? = nil) {
    self.buffer = buffer
    self.time = time
    self.outputTime = outputTime ?? time
  }
}
