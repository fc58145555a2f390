internal import Foundation
internal import ReelCore
internal import ReelManifest

/// The level of the buffer, and the distance from the live edge.
extension PlayerState {
  private static let levelInterval = Duration.milliseconds(50)

  /// While playing, at most every `levelInterval`.
  mutating func updateLevelIfDue(at now: Duration, _ out: inout Effects) {
    if status == .playing, let last = item.levelCheckedAt, now - last < Self.levelInterval { return }
    updateLevel(at: now, &out)
  }

  /// Publishes the buffer level, begins or resumes playback if the buffer is likely to keep up, and lets a live item
  /// follow its edge.
  mutating func updateLevel(at now: Duration, _ out: inout Effects) {
    item.levelCheckedAt = now
    let (isPlaying, isStalled) = (status == .playing, item.playback.stalledAt != nil)
    let time = item.clock.time(at: now)
    // While only audio plays, the position follows the clock.
    let lacksFrames =
      item.onShow.time.map { time - $0 > MediaTime(value: 1, timescale: 2) } ?? !item.playback.isOpening
    if isPlaying, lacksFrames { item.setPosition(time, &out) }
    var keepsUp = publishLevel(isStalled: isStalled, at: time, &out)
    // With less audio, playback would stall again at once, regardless of the level.
    if isStalled, item.lacksAudio(at: time - Self.audioTolerance) { keepsUp = false }
    // Playback does not begin while the audio decoder is behind.
    if !isPlaying, isHeard, item.isAudioDecoderBehind(time) { keepsUp = false }
    if keepsUp { keepUp(at: now, &out) }
    followLive(at: now, &out)
  }

  // MARK: - Private

  /// Publishes the buffer level. Returns true if playback can start or resume and is then unlikely to stall.
  private mutating func publishLevel(isStalled: Bool, at time: MediaTime, _ out: inout Effects) -> Bool {
    guard let session = item.session else { return false }
    let played = session.item
    let level = item.packets.level(without: item.absentKinds(at: time))
    let isRingEmpty = item.frames.isEmpty
    let isMuxedAudioBehind = item.hasSeparateAudio == false && item.isAudioLoaderBehind(time)
    let isDry = level.isConsumed && !level.isComplete && isRingEmpty
    let keepsUp =
      !isDry
      && session.core.configuration.thresholds.isLikelyToKeepUp(
        buffered: .seconds(level.ahead.seconds),
        target: item.target?.bufferDuration ?? played.forwardBufferDuration, isComplete: level.isComplete,
        isFull: level.isResting, isAfterStall: isStalled || isMuxedAudioBehind, rate: wantedRate)
    let isFull = level.isFull || level.isComplete
    played.loadedTimeRanges.set(level.range.map { [$0] } ?? [])
    played.isPlaybackBufferFull.set(isFull)
    played.isPlaybackBufferEmpty.set(level.isConsumed && isRingEmpty)
    played.isPlaybackLikelyToKeepUp.set(keepsUp)
    if isFull, played.preloadStage.value == .firstFrame { item.reach(.buffered, &out) }
    // Reported once, and again if the buffer is full with other limits.
    let limits = isFull ? session.limits(for: item.target) : nil
    if limits != nil, item.filledLimits != limits { out.signal(.filled) }
    item.filledLimits = limits
    return keepsUp
  }

  /// Keeps a live item at its distance from the live edge.
  private mutating func followLive(at now: Duration, _ out: inout Effects) {
    let time = item.clock.time(at: now)
    let isStalled = item.playback.stalledAt != nil
    guard hasCurrentFrame, let distances = item.liveDistances(from: time) else { return }
    item.playerItem?.liveLatency.set(distances.latency)
    guard status == .playing || isStalled, wantedRate.isFinite else { return }
    let action = item.following.catchUp.action(
      latency: distances.latency, target: item.following.target ?? distances.target,
      oldestLatency: distances.oldest > distances.target ? distances.oldest : nil,
      segmentDuration: distances.segmentDuration, userRate: wantedRate, isStalled: isStalled)
    switch action {
    case .normal: setLiveFactor(1, at: now)
    case .rate(let factor): setLiveFactor(factor, at: now)
    case .jump(let latency):
      let wanted = distances.edge - MediaTime(seconds: latency / .seconds(1))
      let end = max(time, item.onShow.end ?? time)
      guard let to = item.livePlace(near: wanted, after: end) else { return }
      setLiveFactor(1, at: now)
      item.following.target = nil
      _ = seek(to: to, at: now, &out)
      out.tell(.jumpedToLive(from: time, to: to), of: item.playerItem)
    }
  }

  private mutating func setLiveFactor(_ factor: Double, at now: Duration) {
    guard item.following.factor != factor else { return }
    item.following.factor = factor
    if item.clock.rate > 0 { item.clock.setRate(clockRate, at: now) }
  }
}
