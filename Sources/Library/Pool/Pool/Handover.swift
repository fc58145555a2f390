public import ReelCore
public import ReelPlayback
public import ReelReading

/// The result of a swipe: the item's frame if it is ready, and the viewer's wait.
///
/// On a **hit** the item's first frame is decoded. On a **miss** it is not yet, and ``firstFrame()`` waits for it. If
/// the item can't be played, ``error`` says why.
public struct Handover: Sendable {
  /// The item's frame; `nil` on a miss.
  public let frame: VideoFrame?
  /// The stage that the item's loading had reached at the swipe.
  public let stage: PreloadStage
  /// The viewer's wait for the frame.
  ///
  /// On a hit, this is the time from the call until the frame was available and on the surface. On a miss, it is the
  /// time so far; the handover that ``firstFrame()`` returns has the total.
  public let duration: WaitTime
  /// The error that the item failed with, or one of kind `usage` for an index outside the feed, or `closed` for a closed
  /// pool; otherwise `nil`.
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

  /// The handover for an item that can't be shown.
  package init(error: ReelError) { self.init(frame: nil, stage: .notLoaded, duration: .zero, error: error) }

  /// True if the first frame was decoded at the swipe.
  public var isHit: Bool { stage >= .firstFrame }

  /// Waits until the viewer sees the item. Returns at once on a hit.
  ///
  /// - Returns: A handover with the frame on show, and with the time from the swipe to the first frame as `duration`.
  /// - Throws: ``error``, or the error that the item failed with; `ReelError` of kind `usage` if the item is pinned,
  ///   `superseded` if another item was shown before the first frame, or `closed` if the pool was closed;
  ///   `CancellationError` if the task was cancelled.
  @discardableResult
  public func firstFrame() async throws -> Handover {
    if isHit { return self }
    if let error { throw error }
    return try await wait?() ?? self
  }
}

extension ReelError {
  package static let closed = ReelError(.closed, "the pool is closed")

  /// The error of a swipe whose item had no frame when another item was shown.
  package static func superseded(_ id: FeedItem.ID) -> ReelError {
    ReelError(.superseded, "another item was shown before the first frame", at: id.description)
  }

  /// The error of a wait for an item in picture in picture.
  package static func pinned(_ id: FeedItem.ID) -> ReelError {
    ReelError(.usage, "the item is pinned: it is shown by a player of its own", at: id.description)
  }
}

extension Handover: CustomStringConvertible {
  /// On a hit, `256x144 at 0.066 s after 0.055 ms`; on a miss, `no frame yet (manifest) after 0.012 ms so far`; for an
  /// item that failed, `no frame:` and the error.
  public var description: String {
    if let frame { return "\(frame) after \(duration)" }
    if let error { return "no frame: \(error)" }
    return isHit ? "\(stage.text) after \(duration)" : "no frame yet (\(stage.text)) after \(duration)"
  }
}

/// Waiting for first frames.
extension PoolCore {
  /// Waits until the first frame of an item of the feed is decoded.
  func ready(_ index: Int) async throws {
    let item = try state.withLock({ $0.snapshot }).item(at: index)
    try await changes.wait {
      if try slot(showing: item.id) != nil { return true }
      try checkIsPreloaded(item, at: index)
      return nil
    }
  }

  /// Waits for the first frame of the item that was shown at `began`.
  func firstFrame(of item: FeedItem, since began: Duration) async throws -> Handover {
    try await changes.wait {
      let slot = try slot(showing: item.id)
      let (isCurrent, isPinned) = state.withLock { ($0.currentItem?.id == item.id, $0.isPinned(item.id)) }
      guard !isPinned else { throw ReelError.pinned(item.id) }
      guard isCurrent else { throw ReelError.superseded(item.id) }
      guard let slot, let load = slot.load, let frame = frame(of: slot) else { return nil }
      let shown = load.firstFrameAt ?? clock.now
      return Handover(
        frame: frame, stage: max(load.stage, .firstFrame), duration: max(.zero, shown - began))
    }
  }

  // MARK: - Private

  /// Returns the slot with a frame of the item; nil while there is none. Throws the item's failure.
  private func slot(showing id: FeedItem.ID) throws -> PoolState.Slot? {
    let state = state.withLock { $0 }
    guard !state.isClosed else { throw ReelError.closed }
    guard let slot = state.slot(of: id) else { return nil }
    if slot.isReady { return slot }
    // A temporary failure is retried in the pool's next turn.
    if case .failed(let error)? = slot.load?.item.status.value,
      !(error.isTemporary && state.isShownAnew && state.currentItem?.id == id)
    {
      throw error
    }
    return nil
  }
}
