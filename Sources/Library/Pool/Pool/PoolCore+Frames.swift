internal import ReelCore
internal import ReelPlayback

/// The frames of the current item, for readers.
extension PoolCore {
  /// A stream for a new reader: the frame on show, then each frame when it is due. A slow reader gets only the
  /// newest.
  var frameStream: AsyncStream<VideoFrame> {
    // Under one lock, so that no frame comes in between.
    outputLock.withLock {
      // Attach only for the first reader, because a player without outputs holds less memory.
      if !frameSurface.hasOutput {
        try? frameSurface.setOutput(makeFrameOutput()) { state.withLock { $0.target } }
      }
      let shown = state.withLock { $0.target }.flatMap { $0.id == frameSurface.id ? frame(of: $0) : nil }
      return frames.events(after: shown)
    }
  }

  private func makeFrameOutput() -> CallbackOutput {
    CallbackOutput { [frames, weak frameSurface] frame in
      // Without readers, no frame is kept.
      guard frames.observerCount > 0, let id = frameSurface?.id, let copy = try? frame.clone() else {
        return
      }
      frames.send(VideoFrame(copy, item: id))
    }
  }
}
