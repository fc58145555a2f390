internal import ReelCore
public import ReelPlayback
internal import Synchronization

/// A player that was taken out of a pool's window, and continues to play independently as picture in picture.
///
/// It ends when you call ``stop()``, when you release it, or when its pool is closed. Its memory is then freed, and the
/// pool loads the item again if the window includes it.
public final class PictureInPicturePlayer: Sendable {
  /// The item that is played.
  public let item: FeedItem
  /// The current state: `willStart`, `didStart`, `willStop`, and finally `didStop`.
  public var state: ObservedProperty<PictureInPictureState> { stateSource.property }

  /// The player, to pause it, seek and so on. Do not replace its item.
  public let player: Player

  private let stateSource = ObservedSource(PictureInPictureState.none)
  private let output: any FrameOutput
  private let emit: @Sendable (PoolEvent) -> Void
  private let onStop: @Sendable () -> Void
  private let isStopped = Atomic(false)

  /// - Parameter onStop: Ends the player.
  package init(
    _ item: FeedItem, player: Player, output: any FrameOutput,
    emit: @escaping @Sendable (PoolEvent) -> Void, onStop: @escaping @Sendable () -> Void
  ) {
    self.item = item
    self.player = player
    self.output = output
    self.emit = emit
    self.onStop = onStop
  }

  deinit { stop() }

  /// Stops the player, detaches its output, and passes through the states `willStop` and `didStop`.
  ///
  /// Further calls have no effect. An error that the output throws when it is finished is a ``PoolEvent/player(_:_:)``
  /// event of the pool.
  public func stop() {
    guard !isStopped.exchange(true, ordering: .relaxed) else { return }
    enter(.willStop)
    do { try player.detach(output) } catch {
      let failure = error as? ReelError ?? ReelError(.cannotWriteOutput, "\(error)")
      emit(.player(item.id, .outputFailed(failure)))
    }
    onStop()
    enter(.didStop)
    stateSource.finish()
  }

  package func start() { enter(.willStart) }

  package func hasStarted() { enter(.didStart) }

  // MARK: - Private

  private func enter(_ next: PictureInPictureState) {
    stateSource.set(next)
    emit(.pinned(item.id, next))
  }
}

/// The state of a player that plays as picture in picture, outside the pool's window.
public enum PictureInPictureState: String, Sendable, Hashable {
  /// Not yet started.
  case none
  /// The player has left the window; its output is about to be attached.
  case willStart
  /// The output is attached, and the player continues to play.
  case didStart
  /// The player is about to stop. If the output can't be attached, this follows `willStart`.
  case willStop
  /// The output is detached, and the player has ended.
  case didStop
}
