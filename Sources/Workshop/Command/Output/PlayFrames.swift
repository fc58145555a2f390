import ReelCore
import ReelFFmpeg
import ReelPlayback

/// The frames that `reel play` shows, on their way to its outputs. It counts them, reports their md5s, and ends
/// playback after `--duration`.
///
/// An error of its outputs is kept in `failure`, because a stopped player does not report errors from ending
/// its outputs.
final class PlayFrames: FrameOutput {
  /// Reports and limits beside the outputs.
  struct Options: Sendable {
    /// Media time to play; nil for no limit.
    var duration: MediaTime?
    /// Called with each frame's record; nil for no records.
    var report: (@Sendable (PlayRecordFrame) throws -> Void)?
    /// When work on the source began.
    var start: ContinuousClock.Instant
  }

  /// The totals of the shown frames.
  struct Account: Sendable {
    var shownCount = 0
    var damagedCount = 0
    /// The media time shown, and what lies between.
    var media = ShownMedia()
    /// The whole duration has been played.
    var hasReachedLimit = false
    var failure: ReelError?
  }

  let isExternal: Bool
  private let outputs: [any FrameOutput]
  private let options: Options
  private let onLimit = Locked(Callback<Void>())
  private let state = Locked(State())

  private struct State {
    var account = Account()
    /// The output time of the last frame, and the media time that had passed before it.
    var last: (outputTime: MediaTime, passed: MediaTime)?
    var isFinished = false
  }

  init(_ outputs: [any FrameOutput], options: Options) {
    self.outputs = outputs
    self.options = options
    isExternal = outputs.contains { $0.isExternal }
  }

  var account: Account { state.withLock { $0.account } }

  /// Sets the handler for the end of the duration. It is called on the thread that shows frames, with the first
  /// frame that is no longer wanted, or on another if the time is up before that.
  func setOnLimit(_ body: (@Sendable () -> Void)?) {
    var callback = Callback<Void>()
    if let body { callback.call = { _ in body() } }
    let made = callback
    onLimit.withLock { $0 = made }
  }

  /// The media time left to play when `position` of the item is on show; nil without a limit, and before the
  /// first frame.
  func timeLeft(at position: MediaTime) -> MediaTime? {
    state.withLock { state in
      guard let limit = options.duration, state.account.media.lastTime != nil else { return nil }
      return limit - state.account.media.passed(at: position)
    }
  }

  /// Ends playback because the duration has been played, although no further frame has come.
  func reachLimit() {
    let isNew = state.withLock { state in
      guard !state.isFinished, !state.account.hasReachedLimit, let limit = options.duration else {
        return false
      }
      state.account.hasReachedLimit = true
      state.account.media.end(whenPassed: limit, isLost: false)
      return true
    }
    if isNew { onLimit.withLock { $0.call }?(()) }
  }

  /// Ends the count at `position` of the item, so that the last frame counts only up to it.
  func end(at position: MediaTime) {
    state.withLock { state in
      if !state.account.hasReachedLimit { state.account.media.end(at: position) }
    }
  }

  func show(_ frame: borrowing TimedFrame) throws {
    let isDamaged = frame.decoded.isDamaged
    switch place(of: frame) {
    case .ignored: return
    case .beyond:
      onLimit.withLock { $0.call }?(())
      return
    case .wanted: break
    }
    do {
      if let report = options.report {
        try report(PlayRecordFrame(frame, after: ContinuousClock.now - options.start))
      }
      for output in outputs { try output.show(frame) }
    } catch {
      note(error)
      throw error
    }
    state.withLock { state in
      state.account.shownCount += 1
      if isDamaged { state.account.damagedCount += 1 }
    }
  }

  func ended(at outputTime: MediaTime) {
    let end = wantedEnd(outputTime)
    for output in outputs { output.ended(at: end) }
  }

  /// The end of the wanted frames in output time, if playback ended at `outputTime`.
  func wantedEnd(_ outputTime: MediaTime) -> MediaTime {
    state.withLock { state in
      guard state.account.hasReachedLimit, let limit = options.duration, let last = state.last else {
        return outputTime
      }
      return min(outputTime, last.outputTime + (limit - last.passed))
    }
  }

  func finish() throws {
    let wasFinished = state.withLock { state in
      defer { state.isFinished = true }
      return state.isFinished
    }
    guard !wasFinished else { return }
    for output in outputs {
      do { try output.finish() } catch { note(error) }
    }
    if let failure = account.failure { throw failure }
  }

  // MARK: - Private

  private enum Place {
    case wanted
    /// The first frame after the wanted ones.
    case beyond
    case ignored
  }

  /// Whether the frame is among the wanted ones.
  private func place(of frame: borrowing TimedFrame) -> Place {
    let (time, length, leftOut, loss) = (frame.time, frame.displayTime, frame.skipped, frame.loss)
    let outputTime = frame.outputTime
    return state.withLock { state in
      if state.isFinished || state.account.hasReachedLimit { return .ignored }
      let passed = state.account.media.passed(before: time, leftOut: leftOut)
      if let limit = options.duration, passed >= limit {
        state.account.hasReachedLimit = true
        state.account.media.end(whenPassed: limit, isLost: loss != nil)
        return .beyond
      }
      state.last = (outputTime, passed)
      state.account.media.show(time, length: length, leftOut: leftOut, loss: loss)
      return .wanted
    }
  }

  private func note(_ error: any Error) {
    state.withLock { state in
      if state.account.failure == nil { state.account.failure = error.asReelError }
    }
  }
}
