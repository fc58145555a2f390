internal import ReelCore
internal import ReelFFmpeg
internal import ReelReading

/// The state of a player: what the program asked for, its outputs, and the item.
///
/// It changes only by its own functions, under the player's lock. It knows no thread, no worker and no call of an
/// output: what follows from a change is in `Effects`. What the player does next is decided in `next(at:_:)`.
///
/// The item's state is always there, empty while nothing is loaded.
struct PlayerState: ~Copyable {
  struct Settings: Sendable {
    var waitsToMinimizeStalls = true
    var requiresLinearPlayback = false
    var actionAtItemEnd = Player.ActionAtItemEnd.pause
    var allowsExternalPlayback = true
    var playsWhenReady = false
    var preloadTarget: PreloadTarget?
    var allowsPictureInPicture = true
  }

  /// An attached output for audio.
  struct SoundAttachment {
    let output: any AudioOutput
    /// The output time of the frame that was on show when it was attached.
    let start: MediaTime
  }

  var settings = Settings()
  /// True after `play()`, until `pause()`, the end, or a stall that is not waited for.
  var wantsToPlay = false
  /// The rate that `play()` uses.
  var wantedRate = 1.0
  var volume: Float = 1
  var isMuted = false
  /// True if no frame is shown until the player is released or paused, or gets another item.
  var isHeld = false
  var isClosed = false
  var outputs: [any FrameOutput] = []
  var audioOutputs: [SoundAttachment] = []
  var outputTimeline = OutputTimeline()
  var item = ItemState()
  /// The reason why there is no item, if another player had it.
  var refusal: ReelError?
  /// What observers have not been told yet.
  var news: [PlayerNews] = []
}

extension PlayerState {
  var status: TimeControlStatus {
    guard wantsToPlay else { return .paused }
    guard item.session != nil else { return .waitingToPlayAtSpecifiedRate(.noItemToPlay) }
    switch item.playback {
    case .opening, .ready: return .waitingToPlayAtSpecifiedRate(.evaluatingBufferingRate)
    case .running, .ended: return .playing
    case .stalled: return .waitingToPlayAtSpecifiedRate(.toMinimizeStalls)
    case .failed: return .paused
    }
  }

  /// At a rate of `.infinity`, the clock follows the frames.
  var isFast: Bool { wantedRate == .infinity }

  /// The rate of the clock while playing.
  var clockRate: Double { isFast || isHeld ? 0 : wantedRate * item.following.factor }

  /// True if an output receives audio.
  var isHeard: Bool { !isMuted && !audioOutputs.isEmpty }

  /// True if the item has ended, and playing restarts it.
  var startsOver: Bool { item.playback.hasEnded && settings.actionAtItemEnd != .none }

  /// True if the first frame is decoded in advance, and no frame after it.
  var restsAtFirst: Bool {
    settings.preloadTarget.map { !$0.isDecoderWarm } ?? false && outputs.isEmpty
  }

  /// False while the frame on show is from before the last seek.
  var hasCurrentFrame: Bool {
    switch item.playback {
    case .opening, .failed: item.onShow.shownAt != nil
    case .ready, .running, .stalled, .ended: true
    }
  }

  func itemTime(at now: Duration) -> MediaTime { item.time(at: now, isFast: isFast) }

  /// The statistics of the item, as far as the state knows them.
  var statistics: PlayerStatistics {
    var statistics = item.statistics
    guard item.session != nil else { return statistics }
    let level = item.packets.level
    let ring = item.frames.statistics
    let onShow = item.onShow.frame
    statistics.hasOutput = !outputs.isEmpty
    statistics.onShowByteCount = onShow?.byteCount ?? 0
    statistics.ring = ring
    statistics.bufferByteCount = level.byteCount
    statistics.bufferHighWaterByteCount = item.packets.highWaterByteCount
    statistics.bufferedDuration = .seconds(level.ahead.seconds)
    statistics.isLoadedToEnd = level.isComplete
    statistics.estimatedBandwidth = item.controller?.estimatedBandwidth
    statistics.decodeDuration = item.decoding.duration
    statistics.decodedFrameCount = item.decoding.frameCount
    statistics.repeatedFrameCount = item.decoding.repeatedCount
    let outsideCount = ring.frameCount + (onShow == nil ? 0 : 1)
    statistics.decoderByteCount = item.decoding.facts?.heldByteCount(outsideCount: outsideCount) ?? 0
    return statistics
  }

  // MARK: How the item is played

  /// Lets the clock and the statistics follow a change of how the item is played.
  ///
  /// - Parameters:
  ///   - before: The status before the change.
  ///   - asked: The time at which the clock should have started; nil for now. It does not start later than the end
  ///     of the frame on show: the next frame is due then, and not late.
  mutating func follow(from before: TimeControlStatus, asked: Duration? = nil, at now: Duration) {
    // Without waiting, playback begins with the first frame.
    if case .ready = item.playback, !settings.waitsToMinimizeStalls { item.playback = .running }
    let after = status
    if before == .playing, after != .playing { item.clock.setRate(0, at: now) }
    if before != .playing, after == .playing, !item.playback.hasEnded {
      item.clock.setRate(clockRate, at: clockStart(asked: asked, at: now))
    }
    // A stall may have begun before it was noticed.
    item.statistics.times.record(.status(after), at: item.playback.stalledAt ?? now)
  }

  /// Tells observers the values of the properties.
  func publish(_ out: inout Effects) {
    out.tell(.status(status, rate: wantsToPlay ? wantedRate : 0, item: item.playerItem))
  }

  /// Continues after the first frame of a position: completes the seek that waited for it.
  mutating func beginPlaying(at now: Duration, _ out: inout Effects) {
    if let seek = item.playback.seek {
      out.tell(.seekDone(time: itemTime(at: now), after: now - seek.began), of: item.playerItem)
      out.answer(seek, with: .success(true))
    }
    let before = status
    item.playback = .ready
    follow(from: before, at: now)
    publish(&out)
    updateLevel(at: now, &out)
  }

  /// Stalls, or pauses if the player does not wait. The media ran out at `time`.
  mutating func stall(since time: Duration, at now: Duration, _ out: inout Effects) {
    guard case .running = item.playback, wantsToPlay else { return }
    let before = status
    item.onShow.drySince = nil
    item.statistics.stallCount += 1
    if settings.waitsToMinimizeStalls {
      item.playback = .stalled(since: time)
    } else {
      wantsToPlay = false
    }
    follow(from: before, at: now)
    out.tell(.stalled(time: itemTime(at: now)), of: item.playerItem)
    item.playerItem?.updateAccess(rung: item.playerItem?.rung.value) { $0.stallCount += 1 }
    publish(&out)
  }

  /// Begins or resumes playback: the buffer is likely to keep up.
  mutating func keepUp(at now: Duration, _ out: inout Effects) {
    let before = status
    let stalledAt = item.playback.stalledAt
    switch item.playback {
    case .ready, .stalled: item.playback = .running
    case .opening, .running, .ended, .failed: return
    }
    follow(from: before, at: now)
    if let stalledAt {
      out.tell(.resumed(time: itemTime(at: now), after: now - stalledAt), of: item.playerItem)
    }
    publish(&out)
  }

  /// Ends the item.
  mutating func end(at now: Duration, _ out: inout Effects) {
    let before = status
    item.clock.setRate(0, at: now)
    item.playback = .ended
    if settings.actionAtItemEnd != .none { wantsToPlay = false }
    follow(from: before, at: now)
    publish(&out)
    out.tell(.playedToEnd(time: (item.onShow.end ?? .zero) - item.onShow.shift), of: item.playerItem)
  }

  /// Ends playback with an error, until a seek tries again.
  mutating func fail(_ error: ReelError, at now: Duration, _ out: inout Effects) {
    let before = status
    out.answer(item.playback.seek, with: .failure(error))
    item.playback = .failed
    if case .failing(let error) = item.health { item.health = .failed(error) }
    item.playerItem?.observed.status.set(.failed(error))
    follow(from: before, at: now)
    publish(&out)
    out.tell(.failed(error), of: item.playerItem)
  }

  // MARK: - Private

  private func clockStart(asked: Duration?, at now: Duration) -> Duration {
    guard let asked, let shownAt = item.onShow.shownAt, let end = item.onShow.end, clockRate > 0 else {
      return now
    }
    let left = Duration.seconds(max(0, (end - item.clock.time(at: now)).seconds) / clockRate)
    return min(now, max(asked, shownAt, now - left))
  }
}
