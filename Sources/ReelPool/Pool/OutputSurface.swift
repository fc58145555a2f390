internal import ReelCore
internal import ReelPlayback

/// Where the current item's frames are shown: one output, which goes from player to player.
///
/// From a player that has shown nothing it gets nothing; from one that has, the frame on show, and then those that
/// follow: none twice, and none is left out.
///
/// The output is called, and goes from player to player, with one lock held that all players of the window share: so it is
/// called by one thread at a time, and never with a frame of an item that it has left. The lock can be taken again by
/// who has it: an output may swipe while it is shown a frame.
final class OutputSurface: Sendable {
  /// A player, and the item that it is wanted for.
  typealias Target = (player: PooledPlayer, id: FeedItem.ID)

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
    private weak let surface: OutputSurface?

    init(_ output: any FrameOutput, to target: Target, of surface: OutputSurface) {
      self.output = output
      player = target.player
      id = target.id
      isExternal = output.isExternal
      self.surface = surface
    }

    func show(_ frame: borrowing TimedFrame) throws {
      guard let surface, surface.isCurrent(self) else { return }
      do { try output.show(frame) } catch {
        surface.drop(output)
        throw error
      }
    }

    // The output goes on with another player.
    func finish() { surface?.leave(self) }
  }

  private let state = Locked(State())
  private let lock: OutputLock
  private let emit: @Sendable (PoolEvent) -> Void

  /// - Parameter lock: the one that the pool's players share (`PlayerConfiguration.outputLock`).
  init(lock: OutputLock, emit: @escaping @Sendable (PoolEvent) -> Void) {
    self.lock = lock
    self.emit = emit
  }

  /// The item whose player the output is attached to.
  var id: FeedItem.ID? { state.withLock { $0.attachment?.id } }

  /// An output is set.
  var hasOutput: Bool { state.withLock { $0.output != nil } }

  /// Exchanges the output; the one before is finished.
  func setOutput(_ output: (any FrameOutput)?, target: () -> Target?) throws {
    let old = lock.withLock {
      detach()
      let old = state.withLock { state in
        defer {
          state.output = output
          state.posterID = nil
        }
        return state.output
      }
      attach(to: target())
      return old
    }
    if let old, old !== output { try old.finish() }
  }

  /// Goes to the player that has the current item, if there is one.
  ///
  /// - Parameter target: asked while nobody else moves the output.
  func follow(_ target: () -> Target?) { lock.withLock { attach(to: target()) } }

  /// True where a poster of that item would be news.
  func wantsPoster(of id: FeedItem.ID) -> Bool {
    state.withLock { $0.output != nil && $0.posterID != id }
  }

  /// Shows an item's poster, once, where nothing else of the item is shown.
  ///
  /// - Parameter isWanted: asked while no player shows anything.
  func show(_ poster: borrowing TimedFrame, of id: FeedItem.ID, where isWanted: () -> Bool) {
    lock.withLock { showLocked(poster, of: id, where: isWanted) }
  }

  // MARK: - Private

  private func showLocked(_ poster: borrowing TimedFrame, of id: FeedItem.ID, where isWanted: () -> Bool) {
    let output = state.withLock { state -> (any FrameOutput)? in
      guard state.posterID != id else { return nil }
      return state.output
    }
    guard let output, isWanted() else { return }
    state.withLock { $0.posterID = id }
    emit(.posterShown(id))
    do { try output.show(poster) } catch {
      drop(output)
      detach()
      let failure = error as? ReelError ?? ReelError(.cannotWriteOutput, "\(error)")
      emit(.player(id, .outputFailed(failure)))
    }
  }

  private func attach(to target: Target?) {
    let attached = state.withLock { $0.attachment }
    if let target, let attached, attached.player === target.player, attached.id == target.id { return }
    if attached != nil { detach() }
    guard let target, let output = state.withLock({ $0.output }) else { return }
    // Refused: nothing is shown then.
    guard !output.isExternal || target.player.player.allowsExternalPlayback else { return }
    let attachment = Attachment(output, to: target, of: self)
    state.withLock { state in
      state.attachment = attachment
      if state.posterID != target.id { state.posterID = nil }
    }
    // Before its frame comes.
    emit(.surfaceAttached(target.id))
    if (try? target.player.player.attach(attachment)) == nil { leave(attachment) }
  }

  /// Leaves the player that it shows.
  private func detach() {
    guard let attachment = state.withLock({ $0.attachment.take() }) else { return }
    // What it throws comes of `Attachment.finish`, which throws nothing.
    try? attachment.player.player.detach(attachment)
    emit(.surfaceDetached(attachment.id))
  }

  private func isCurrent(_ attachment: Attachment) -> Bool {
    state.withLock { $0.attachment === attachment }
  }

  /// A player has given the output up.
  private func leave(_ attachment: Attachment) {
    let wasCurrent = state.withLock { state in
      guard state.attachment === attachment else { return false }
      state.attachment = nil
      return true
    }
    if wasCurrent { emit(.surfaceDetached(attachment.id)) }
  }

  /// The output has failed: it gets nothing any more.
  private func drop(_ output: any FrameOutput) {
    let wasSet = state.withLock { state in
      guard state.output === output else { return false }
      state.output = nil
      return true
    }
    // It has failed already: what its end throws is no news.
    if wasSet { try? output.finish() }
  }
}
