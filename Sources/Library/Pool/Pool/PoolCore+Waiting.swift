internal import ReelCore
internal import ReelPlayback

/// Waiting for first frames.
extension PoolCore {
  /// Waits until the first frame of an item of the feed is decoded.
  func ready(_ index: Int) async throws {
    let item = try item(index, of: state.withLock { $0.snapshot })
    try await wait {
      if try player(showing: item.id) != nil { return true }
      try checkIsPreloaded(item, at: index)
      return nil
    }
  }

  /// Waits for the first frame of the item that was shown at `began`.
  func firstFrame(of item: FeedItem, since began: Duration) async throws -> Handover {
    try await wait {
      let player = try player(showing: item.id)
      let (isCurrent, isPinned) = state.withLock { ($0.currentItem?.id == item.id, $0.isPinned(item.id)) }
      guard !isPinned else { throw Self.pinned(item) }
      guard isCurrent else {
        throw ReelError(
          .cancelled, "another item was shown before the first frame was ready", at: item.id.description)
      }
      guard let player, let load = player.load, let frame = frame(of: (player, item.id)) else { return nil }
      let shown = load.firstFrameAt ?? configuration.player.clock.now
      return Handover(
        frame: frame, stage: max(load.stage, .firstFrame),
        duration: max(.zero, shown - began))
    }
  }

  /// The frame on show in a player; nil before the first.
  func frame(of target: OutputSurface.Target) -> VideoFrame? {
    guard let frame = target.player.player.currentFrame() else { return nil }
    return VideoFrame(frame, item: target.id)
  }

  // MARK: - Private

  /// Calls `look` now and after each change, until it returns a value.
  @discardableResult
  private func wait<Value>(_ look: () throws -> Value?) async throws -> Value {
    // Observe before the first look, so that no change is missed.
    let changes = changes.events
    if let value = try look() { return value }
    for await _ in changes {
      if let value = try look() { return value }
    }
    try Task.checkCancellation()
    throw Self.closed
  }

  /// The player with a frame of the item; nil while there is none. Throws the item's failure.
  private func player(showing id: FeedItem.ID) throws(ReelError) -> PooledPlayer? {
    let (isClosed, player, failure) = state.withLock { state -> (Bool, PooledPlayer?, ReelError?) in
      let player = state.player(of: id)
      if player?.isReady == true { return (state.isClosed, player, nil) }
      guard case .failed(let error)? = player?.load?.item.status.value else {
        return (state.isClosed, nil, nil)
      }
      // A temporary failure is retried in the pool's next turn.
      let isTriedAgain = error.isTemporary && state.isShownAnew && state.currentItem?.id == id
      return (state.isClosed, nil, isTriedAgain ? nil : error)
    }
    guard !isClosed else { throw Self.closed }
    if let failure { throw failure }
    return player
  }

  /// Throws if the policy currently does not preload the item's first frame.
  private func checkIsPreloaded(_ item: FeedItem, at index: Int) throws(ReelError) {
    guard !state.withLock({ $0.isPinned(item.id) }) else { throw Self.pinned(item) }
    guard let plan = makePlan() else { throw Self.closed }
    let order = plan.entries.first { $0.item.id == item.id }?.order
    guard let order else {
      throw ReelError(
        .usage, "item \(index) is not preloaded by the policy \(configuration.policy)",
        at: item.id.description, advice: "show it, or use another policy or more slots")
    }
    if let target = order.target, target.stage < .firstFrame {
      throw ReelError(
        .usage, "item \(index) is preloaded only to \(target.stage) by the policy \(configuration.policy)",
        at: item.id.description, advice: "show it, or use another policy")
    }
  }

  private static let closed = ReelError(.cancelled, "the pool was closed")

  private static func pinned(_ item: FeedItem) -> ReelError {
    ReelError(.usage, "the item is pinned: it is shown by a player of its own", at: item.id.description)
  }
}
