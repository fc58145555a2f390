internal import DequeModule
package import ReelCore
internal import ReelFFmpeg
internal import ReelReading

/// The decoded frames of one player that are not shown yet, in presentation order.
///
/// A value, which its owner keeps with the job of the decoder under one lock. It owns its frames. Those that it
/// drops wait for `takeReleased()`, so that they are freed outside that lock.
package struct FrameRing: ~Copyable, Sendable {
  /// The next frame of the ring.
  package enum Head: Sendable, Equatable {
    /// The times of the first frame and, if there is one, of the second.
    case frame(MediaTime, following: MediaTime?)
    /// No frame yet.
    case empty
    /// No frame, and none will follow.
    case drained
  }

  package struct Statistics: Sendable, Hashable {
    /// The frames in the ring and their bytes, as counted by `VideoFrame.byteCount`.
    package internal(set) var frameCount = 0
    package internal(set) var byteCount = 0
    package let frameCapacity: Int
    package let byteCapacity: Int
    /// The maxima since the ring was created.
    package internal(set) var highWaterFrameCount = 0
    package internal(set) var highWaterByteCount = 0
  }

  private(set) var statistics: Statistics
  /// The time of the last frame taken since the last flush.
  private(set) var takenTime: MediaTime?
  private var frames = Deque<VideoFrame>()
  private var released: [VideoFrame] = []
  private var isFinished = false
  /// The size of the rejected frame while the decoder waits for room.
  private var refusedByteCount: Int?

  /// Creates a ring for at least one frame: a `frameCapacity` below 1 counts as 1, and an empty ring accepts
  /// a frame larger than `byteCapacity`.
  init(frameCapacity: Int, byteCapacity: Int) {
    statistics = Statistics(frameCapacity: max(1, frameCapacity), byteCapacity: byteCapacity)
  }

  var isEmpty: Bool { frames.isEmpty }

  /// The state of the next frame.
  var head: Head {
    guard let first = frames.first else { return isFinished ? .drained : .empty }
    return .frame(first.time, following: frames.count > 1 ? frames[1].time : nil)
  }

  /// Adds a frame that follows the others in presentation order. Returns false if there is no room.
  mutating func offer(_ frame: VideoFrame) -> Bool {
    let byteCount = frame.byteCount
    guard hasRoom(for: byteCount) else {
      refusedByteCount = byteCount
      return false
    }
    refusedByteCount = nil
    frames.append(frame)
    statistics.add(byteCount)
    return true
  }

  /// Ends the frames: after the last, the head is `drained`.
  mutating func finish() { isFinished = true }

  /// Cancels `finish`: more frames follow.
  mutating func resume() { isFinished = false }

  /// Takes the first frame; nil if the ring is empty.
  mutating func take() -> VideoFrame? {
    guard let frame = frames.popFirst() else { return nil }
    statistics.remove(frame.byteCount)
    takenTime = frame.time
    return frame
  }

  /// Returns true, once, if a frame was rejected and there is room for it.
  mutating func takeRoom() -> Bool {
    guard let refusedByteCount, hasRoom(for: refusedByteCount) else { return false }
    self.refusedByteCount = nil
    return true
  }

  /// Returns true if the next frame belongs to a span other than `span` that follows a gap in the timeline.
  func headFollowsGap(than span: StreamSpan?) -> Bool {
    guard let own = frames.first?.span else { return false }
    return own !== span && own.followsGap
  }

  /// Drops the frames of iterations after `iteration`.
  mutating func drop(after iteration: Int) {
    while let last = frames.last, let span = last.span, span.loop.iteration > iteration {
      statistics.remove(last.byteCount)
      released.append(frames.removeLast())
    }
  }

  /// Drops all frames, which the decoder will bring again.
  mutating func clear() {
    released += frames
    frames.removeAll(keepingCapacity: true)
    isFinished = false
    statistics.frameCount = 0
    statistics.byteCount = 0
  }

  /// Drops all frames, for others from another position. High-water marks are kept.
  mutating func flush() {
    clear()
    takenTime = nil
  }

  /// Returns the frames that were dropped since the last call, to be freed outside the owner's lock.
  mutating func takeReleased() -> [VideoFrame] {
    defer { released = [] }
    return released
  }

  // MARK: - Private

  private func hasRoom(for byteCount: Int) -> Bool {
    guard !frames.isEmpty else { return true }
    return frames.count < statistics.frameCapacity
      && statistics.byteCount + byteCount <= statistics.byteCapacity
  }
}

extension FrameRing.Statistics {
  fileprivate mutating func add(_ bytes: Int) {
    frameCount += 1
    byteCount += bytes
    highWaterFrameCount = max(highWaterFrameCount, frameCount)
    highWaterByteCount = max(highWaterByteCount, byteCount)
  }

  fileprivate mutating func remove(_ bytes: Int) {
    frameCount -= 1
    byteCount -= bytes
  }
}
