public import ReelCore
public import ReelPlayback

/// What a swipe finds, and how long the viewer waits.
///
/// On a **hit** the item's frame is there. On a **miss** it is not, and ``firstFrame()`` waits for it. An item that
/// can't be played says why in ``error``.
public struct Handover: Sendable {
  /// The item's frame; nil on a miss.
  public let frame: VideoFrame?
  /// The stage that the item's loading had reached.
  public let stage: PreloadStage
  /// How long the viewer waits for the frame.
  ///
  /// On a hit it is the time from the call until the frame was in hand, and on the surface. On a miss it is the time
  /// so far: the handover that ``firstFrame()`` returns has the whole.
  public let duration: WaitTime
  /// What the item failed with, or `usage` for an index that the feed does not have; else nil.
  ///
  /// An item whose failure may pass (`ReelError.isTemporary`) is loaded again and has no error here.
  public let error: ReelError?

  private let wait: (@Sendable () async throws -> Handover)?

  /// - Parameters:
  ///   - duration: From the call until now.
  ///   - wait: Waits for the frame of a miss; nil where none will come.
  public init(
    frame: VideoFrame?, stage: PreloadStage, duration: Duration, error: ReelError? = nil,
    firstFrame wait: (@Sendable () async throws -> Handover)? = nil
  ) {
    self.frame = frame
    self.stage = stage
    self.duration = WaitTime(duration, isOver: stage >= .firstFrame)
    self.error = error
    self.wait = wait
  }

  /// True where the first frame was there.
  public var isHit: Bool { stage >= .firstFrame }

  /// Returns when the viewer sees the item, with how long that took: `frame` is the frame on show, and `duration` the
  /// time from the swipe to the first frame. At once on a hit.
  ///
  /// - Throws: What the item failed with; `ReelError` of kind `cancelled` where another item was shown before, or the
  ///   pool was closed, and of kind `usage` where the item is pinned or the feed does not have it; `CancellationError`
  ///   where the task was cancelled.
  @discardableResult
  public func firstFrame() async throws -> Handover {
    if isHit { return self }
    if let error { throw error }
    return try await wait?() ?? self
  }
}

extension Handover: CustomStringConvertible {
  /// `256x144 at 0.066 s after 0.055 ms`; on a miss how far the item is loaded, `no frame yet (manifest) after 0.012 ms
  /// so far`; of a broken item, why.
  public var description: String {
    if let frame { return "\(frame) after \(duration)" }
    if let error { return "no frame: \(error)" }
    return isHit ? "\(stage) after \(duration)" : "no frame yet (\(stage)) after \(duration)"
  }
}
