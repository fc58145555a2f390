internal import ReelCore
internal import ReelPlayback

/// The frames of the current item, for readers.
extension PoolCore {
  /// A new reader: the frame on show, then each as it is due; of those that it has not read only the newest.
  var frameStream: AsyncStream<VideoFrame> {
    // Together: no frame comes in between.
    outputLock.withLock {
      // Only with the first reader: a player without outputs holds less.
      if !frameSurface.hasOutput {
        try? frameSurface.setOutput(makeFrameOutput()) { state.withLock { $0.target } }
      }
      let shown = state.withLock { $0.target }.flatMap { $0.id == frameSurface.id ? frame(of: $0) : nil }
      return frames.events(after: shown)
    }
  }

  private func makeFrameOutput() -> CallbackOutput {
    CallbackOutput { [frames, weak frameSurface] frame in
      // Without readers no frame is kept.
      guard frames.observerCount > 0, let id = frameSurface?.id, let copy = try? frame.clone() else {
        return
      }
      frames.send(VideoFrame(copy, item: id))
    }
  }
}
