internal import Foundation
internal import ReelCore
internal import ReelPlayback

/// Where the current item's pictures are shown: one output, which goes from player to player.
///
/// From a player that has shown nothing it gets nothing; from one that has, the picture on show, and then those that
/// follow: none twice, and none is left out.
final class OutputSurface: Sendable {
  private struct State {
    var output: (any FrameOutput)?
    var attachment: Attachment?
    /// Whose poster was shown last.
    var posterID: FeedItem.ID?
  }

  /// What a player takes for its output, for as long as it is attached.
  private final class Attachment: FrameOutput {
    let isExternal: Bool
    let player: PooledPlayer
    let id: FeedItem.ID
    private let output: any FrameOutput
    private let onFailure: @Sendable () -> Void

    init(
      _ output: any FrameOutput, player: PooledPlayer, id: FeedItem.ID,
      onFailure: @escaping @Sendable () -> Void
    ) {
      self.output = output
      self.player = player
      self.id = id
      self.onFailure = onFailure
      isExternal = output.isExternal
    }

    func show(_ picture: borrowing TimedPicture) throws {
      do { try output.show(picture) } catch {
        onFailure()
        throw error
      }
    }

    // The output goes on with another player.
    func finish() {}
  }

  private let state = Locked(State())
  /// Held while the output changes its player, whose `show` is called meanwhile: the lock can be taken again from there.
  private let moving = NSRecursiveLock()
  private let emit: @Sendable (PoolEvent) -> Void

  init(emit: @escaping @Sendable (PoolEvent) -> Void) { self.emit = emit }

  /// The item whose player the output is attached to.
  var id: FeedItem.ID? { state.withLock { $0.attachment?.id } }

  /// Exchanges the output; the one before is finished.
  func setOutput(_ output: (any FrameOutput)?, current: () -> PooledPlayer?) throws {
    let old = moving.withLock {
      detach()
      let old = state.withLock { state in
        defer { state.output = output }
        return state.output
      }
      attach(to: current())
      return old
    }
    if let old, old !== output { try old.finish() }
  }

  /// Goes to the player that shows the current item, if there is one.
  ///
  /// - Parameter current: asked while nobody else moves the output.
  func follow(_ current: () -> PooledPlayer?) { moving.withLock { attach(to: current()) } }

  /// Shows an item's poster, once, where nothing else of the item is shown.
  func show(_ poster: borrowing TimedPicture, of id: FeedItem.ID, where isWanted: () -> Bool) throws -> Bool {
    moving.lock()
    defer { moving.unlock() }
    let output = state.withLock { state -> (any FrameOutput)? in
      guard state.posterID != id else { return nil }
      return state.output
    }
    guard let output, isWanted() else { return false }
    state.withLock { $0.posterID = id }
    try output.show(poster)
    return true
  }

  // MARK: - Private

  private func attach(to player: PooledPlayer?) {
    let id = player?.id
    let output = state.withLock { state -> (any FrameOutput)? in
      state.attachment?.player === player && state.attachment?.id == id ? nil : state.output
    }
    guard let output else { return player == nil ? detach() : () }
    detach()
    guard let player, let id else { return }
    let attachment = Attachment(output, player: player, id: id) { [weak self] in
      self?.state.withLock { $0.output = nil }
    }
    state.withLock { state in
      state.attachment = attachment
      if state.posterID != id { state.posterID = nil }
    }
    // Before its picture comes.
    emit(.surfaceAttached(id))
    // Refused where the player does not allow external outputs: nothing is shown then.
    guard (try? player.player.attach(attachment)) != nil else {
      state.withLock { $0.attachment = nil }
      return emit(.surfaceDetached(id))
    }
  }

  /// Leaves the player that it shows.
  private func detach() {
    let attachment = state.withLock { $0.attachment.take() }
    guard let attachment else { return }
    try? attachment.player.player.detach(attachment)
    emit(.surfaceDetached(attachment.id))
  }
}
