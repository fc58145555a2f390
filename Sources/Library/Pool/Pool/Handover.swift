public import ReelCore
public import ReelPlayback

/// The result of a swipe: the item's frame if it is ready, and how long the viewer waits.
///
/// On a **hit** the item's first frame is decoded. On a **miss** it is not yet, and ``firstFrame()`` waits for it. If
/// the item can't be played, ``error`` says why.
public struct Handover: Sendable {
  /// The item's frame; `nil` on a miss.
  public let frame: VideoFrame?
  /// The stage that the item's loading had reached at the swipe.
  public let stage: PreloadStage
  /// How long the viewer waits for the frame.
  ///
  /// On a hit, this is the time from the call until the frame was available and on the surface. On a miss, it is the
  /// time so far; the handover that ``firstFrame()`` returns has the total.
  public let duration: WaitTime
  /// The error that the item failed with, or one of kind `usage` for an index outside the feed; otherwise `nil`.
  ///
  /// An item whose failure is temporary (`ReelError.isTemporary`) is loaded again, and has no error here.
  public let error: ReelError?

  private let wait: (@Sendable () async throws -> Handover)?

  /// A handover, for types that conform to ``PlayerPooling``.
  ///
  /// - Parameters:
  ///   - frame: The item's frame; `nil` on a miss.
  ///   - stage: The stage that the item's loading has reached. From `firstFrame` on, the handover is a hit.
  ///   - duration: The time from the call until now.
  ///   - error: The error that the item failed with.
  ///   - wait: Waits for the first frame of a miss; `nil` if none will come.
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

  /// True if the first frame was decoded at the swipe.
  public var isHit: Bool { stage >= .firstFrame }

  /// Waits until the viewer sees the item. Returns at once on a hit.
  ///
  /// - Returns: A handover with the frame on show, and with the time from the swipe to the first frame as `duration`.
  /// - Throws: The error that the item failed with; `ReelError` of kind `cancelled` if another item was shown before
  ///   the first frame, or the pool was closed; `ReelError` of kind `usage` if the item is pinned or the index is
  ///   outside the feed; `CancellationError` if the task was cancelled.
  @discardableResult
  public func firstFrame() async throws -> Handover {
    if isHit { return self }
    if let error { throw error }
    return try await wait?() ?? self
  }
}

extension Handover: CustomStringConvertible {
  /// On a hit, `256x144 at 0.066 s after 0.055 ms`; on a miss, `no frame yet (manifest) after 0.012 ms so far`; for an
  /// item that failed, `no frame:` and the error.
  public var description: String {
    if let frame { return "\(frame) after \(duration)" }
    if let error { return "no frame: \(error)" }
    return isHit ? "\(stage) after \(duration)" : "no frame yet (\(stage)) after \(duration)"
  }
}
