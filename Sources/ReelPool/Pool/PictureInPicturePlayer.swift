internal import ReelCore
public import ReelPlayback

/// A player that was taken out of a pool's window and plays on by itself, as picture in picture.
///
/// It goes through `willStart`, `didStart`, `willStop` and `didStop`; `none` is before. When it is stopped, let go, or its
/// pool is closed, its memory is given back, and the item is loaded by the pool again where that wants it.
public final class PictureInPicturePlayer: Sendable {
  public let item: FeedItem
  public let state: ObservedProperty<PictureInPictureState>

  private let pooled: PooledPlayer
  private let output: any FrameOutput
  private let emit: @Sendable (PoolEvent) -> Void
  private let onStop: @Sendable () -> Void
  private let isStopped = Locked(false)

  init(
    _ item: FeedItem, player: PooledPlayer, output: any FrameOutput,
    state: ObservedProperty<PictureInPictureState>,
    emit: @escaping @Sendable (PoolEvent) -> Void, onStop: @escaping @Sendable () -> Void
  ) {
    self.item = item
    pooled = player
    self.output = output
    self.state = state
    self.emit = emit
    self.onStop = onStop
  }

  deinit { stop() }

  /// To pause it, seek in it, and so on. It is not to be given another item.
  public var player: Player { pooled.player }

  /// Ends it: `willStop`, then `didStop`. Once; another call does nothing. What the output's end throws is in the pool's
  /// events.
  public func stop() {
    let wasStopped = isStopped.withLock { value in
      defer { value = true }
      return value
    }
    guard !wasStopped else { return }
    enter(.willStop)
    do { try pooled.player.detach(output) } catch {
      let failure = error as? ReelError ?? ReelError(.cannotWriteOutput, "\(error)")
      emit(.player(item.id, .outputFailed(failure)))
    }
    onStop()
    // Where the pool is gone.
    pooled.end()
    enter(.didStop)
    state.finish()
  }

  func start() {
    enter(.willStart)
  }

  func hasStarted() { enter(.didStart) }

  // MARK: - Private

  private func enter(_ next: PictureInPictureState) {
    state.set(next)
    emit(.pinned(item.id, next))
  }
}
