internal import ReelCore
internal import ReelPlayback
internal import ReelReading

/// The output of the current item's frames. It moves from player to player.
///
/// A player that has shown nothing yet delivers nothing. Any other player first delivers the frame on show,
/// and then the following ones, each exactly once.
///
/// The players of the window share one lock, which is held while the output is called and while it moves.
/// Therefore, it is called by one thread at a time, and never with a frame of an item that it has left. The
/// lock is recursive: an output may swipe while it is shown a frame.
final class OutputSurface: Sendable {
  /// A player and the item that it is expected to play.
  typealias Target = (player: PooledPlayer, id: FeedItem.ID)

  private struct State {
    var output: (any FrameOutput)?
    var attachment: Attachment?
    /// The item whose poster was shown last.
    var posterID: FeedItem.ID?
    /// The output's own time, which continues from player to player.
    var timeline = OutputTimeline()

    /// Returns the frame of an item with its output time.
    mutating func place(_ frame: VideoFrame, of id: FeedItem.ID) -> VideoFrame {
      var placed = frame
      placed.outputTime = timeline.place(frame, at: frame.outputTime, shift: .zero)
      placed.item = id
      return placed
    }
  }

  /// The output that is attached to a player in place of the real one.
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

    func show(_ frame: VideoFrame) throws {
      guard let surface, surface.isCurrent(self) else { return }
      do { try output.show(surface.placed(frame, of: id)) } catch {
        surface.drop(output)
        throw error
      }
    }

    // The output continues with another player.
    func finish() { surface?.leave(self) }
  }

  private let state = Locked(State())
  private let lock: OutputLock
  private let emit: @Sendable (PoolEvent) -> Void

  /// - Parameter lock: The lock shared by the pool's players (`PlayerConfiguration.outputLock`).
  init(lock: OutputLock, emit: @escaping @Sendable (PoolEvent) -> Void) {
    self.lock = lock
    self.emit = emit
  }

  /// The item whose player the output is attached to.
  var id: FeedItem.ID? { state.withLock { $0.attachment?.id } }

  /// True if an output is set.
  var hasOutput: Bool { state.withLock { $0.output != nil } }

  /// Replaces the output. The previous one is finished.
  func setOutput(_ output: (any FrameOutput)?, target: () -> Target?) throws {
    let old = lock.withLock {
      detach()
      let old = state.withLock { state in
        defer {
          state.output = output
          state.posterID = nil
          state.timeline = OutputTimeline()
        }
        return state.output
      }
      attach(to: target())
      return old
    }
    if let old, old !== output { try old.finish() }
  }

  /// Moves to the current item's player, if there is one.
  ///
  /// - Parameter target: Called while nothing else moves the output.
  func follow(_ target: () -> Target?) { lock.withLock { attach(to: target()) } }

  /// Returns true if the item's poster has not been shown yet.
  func wantsPoster(of id: FeedItem.ID) -> Bool {
    state.withLock { $0.output != nil && $0.posterID != id }
  }

  /// Shows an item's poster, once, unless a frame of the item is shown.
  ///
  /// - Parameter isWanted: Called while no player shows a frame.
  func show(_ poster: VideoFrame, of id: FeedItem.ID, where isWanted: () -> Bool) {
    lock.withLock { showLocked(poster, of: id, where: isWanted) }
  }

  // MARK: - Private

  private func showLocked(_ poster: VideoFrame, of id: FeedItem.ID, where isWanted: () -> Bool) {
    let output = state.withLock { state -> (any FrameOutput)? in
      guard state.posterID != id else { return nil }
      return state.output
    }
    guard let output, isWanted() else { return }
    state.withLock { $0.posterID = id }
    emit(.posterShown(id))
    state.withLock { $0.timeline.breakOff() }
    do { try output.show(placed(poster, of: id)) } catch {
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
    // The player refuses external outputs, so nothing is shown.
    guard !output.isExternal || target.player.player.allowsExternalPlayback else { return }
    let attachment = Attachment(output, to: target, of: self)
    state.withLock { state in
      state.attachment = attachment
      state.timeline.breakOff()
      if state.posterID != target.id { state.posterID = nil }
    }
    // The event precedes the item's frame.
    emit(.surfaceAttached(target.id))
    if (try? target.player.player.attach(attachment)) == nil { leave(attachment) }
  }

  /// Leaves the player that the output is attached to.
  private func detach() {
    guard let attachment = state.withLock({ $0.attachment.take() }) else { return }
    // An error could only come from `Attachment.finish`, which does not throw.
    try? attachment.player.player.detach(attachment)
    emit(.surfaceDetached(attachment.id))
  }

  private func placed(_ frame: VideoFrame, of id: FeedItem.ID) -> VideoFrame {
    state.withLock { $0.place(frame, of: id) }
  }

  private func isCurrent(_ attachment: Attachment) -> Bool {
    state.withLock { $0.attachment === attachment }
  }

  /// Called when a player has detached the output.
  private func leave(_ attachment: Attachment) {
    let wasCurrent = state.withLock { state in
      guard state.attachment === attachment else { return false }
      state.attachment = nil
      return true
    }
    if wasCurrent { emit(.surfaceDetached(attachment.id)) }
  }

  /// Removes an output that has failed.
  private func drop(_ output: any FrameOutput) {
    let wasSet = state.withLock { state in
      guard state.output === output else { return false }
      state.output = nil
      return true
    }
    // The failure has been reported already.
    if wasSet { try? output.finish() }
  }
}
