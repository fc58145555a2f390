internal import ReelCore

/// Playback of media as it is loaded, by arithmetic: when it begins, where and how long it stalls, and when loading pauses and
/// continues.
///
/// Positions are in seconds. Whoever loads the tracks states how far they are, and calls `play` whenever that has changed, and
/// at `nextTime`. A pure value that reads no clock.
package struct BufferedPlayback: Sendable {
  /// What is loaded of video, or of audio with segments of its own.
  package struct Track: Sendable, Hashable {
    /// The end of what is loaded.
    package var end = 0.0
    /// True if nothing more comes.
    package var isComplete = false
    /// False while loading pauses, because enough is loaded.
    package var isFilling = true

    package init() {}
  }

  package enum State: Sendable, Hashable {
    /// Playback has not begun, or is paused.
    case paused
    case playing(from: Double, since: Duration)
    case stalled(since: Duration)
  }

  /// A change of the state.
  package enum Change: Sendable, Hashable {
    case began
    case stalled
    case resumed(LinkPlayback.Stall)
  }

  /// Of these it uses `start`, `resume`, `target`, `refillShare` and `costs.play`.
  package var rules: LinkPlayback.Rules
  /// Video, then audio with segments of its own.
  package var tracks: [Track]
  /// The media that is played in a second.
  package private(set) var rate = 1.0
  package private(set) var state = State.paused
  /// The time of the last call.
  package private(set) var now: Duration
  /// What was played, at the time of the last call. Set it only while playback is paused.
  package var position = 0.0
  /// The greatest position so far.
  package private(set) var playedEnd = 0.0

  /// Separate audio may be late by this much before playback stalls.
  private static let audioTolerance = 0.1
  package static let instant = 1e-6

  package init(trackCount: Int, rules: LinkPlayback.Rules, at now: Duration) {
    self.rules = rules
    self.now = now
    tracks = [Track](repeating: Track(), count: trackCount)
  }

  /// The end of what is loaded in all tracks.
  package var loadedEnd: Double { tracks.map(\.end).min() ?? 0 }

  /// The end of all that there is; nil if more comes.
  package var end: Double? { tracks.allSatisfy(\.isComplete) ? tracks.map(\.end).max() : nil }

  /// True while the position advances.
  package var isPlaying: Bool { if case .playing = state { true } else { false } }

  /// The time since which playback waits for media; nil if it does not.
  package var stalledSince: Duration? { if case .stalled(let since) = state { since } else { nil } }

  /// Advances the position to that of a time.
  package mutating func go(to time: Duration) {
    now = max(now, time)
    guard case .playing(let start, let since) = state else { return }
    position = start + max(0, (now - since) / .seconds(1)) * rate
    playedEnd = max(playedEnd, position)
  }

  /// Pauses, and returns the stall that this ends, if there is one.
  package mutating func pause(at time: Duration) -> LinkPlayback.Stall? {
    go(to: time)
    defer { state = .paused }
    return stall
  }

  /// Plays at another rate from a time on.
  package mutating func setRate(_ rate: Double, at time: Duration) {
    guard rate != self.rate else { return }
    go(to: time)
    if case .playing(_, let since) = state { state = .playing(from: position, since: max(since, now)) }
    self.rate = rate
  }

  /// Goes on at another position.
  package mutating func skip(to position: Double) {
    self.position = position
    if case .playing = state { state = .playing(from: position, since: now) }
  }

  /// Pauses loading of a track once enough is loaded, and continues it once there is room again.
  package mutating func updateFilling(_ index: Int) {
    let ahead = tracks[index].end - position
    if tracks[index].isFilling {
      if ahead >= rules.target { tracks[index].isFilling = false }
    } else if ahead < rules.target * rules.refillShare || ahead <= Self.instant && rules.target > 0 {
      tracks[index].isFilling = true
    }
  }

  /// Begins, resumes or stalls, if it has to.
  ///
  /// - Parameter mayBegin: False while the first frame is not on show, or playback is not wanted.
  package mutating func play(mayBegin: Bool) -> Change? {
    switch state {
    case .paused:
      guard mayBegin, keepsUp(rules.start) else { return nil }
      state = .playing(from: position, since: now + rules.costs.play)
      return .began
    case .stalled:
      guard keepsUp(rules.resume), let stall else { return nil }
      state = .playing(from: position, since: now)
      return .resumed(stall)
    case .playing:
      let runsOut = tracks.indices.contains { index in
        !tracks[index].isComplete && tracks[index].end + tolerance(of: index) <= position + Self.instant
      }
      guard runsOut else { return nil }
      state = .stalled(since: now)
      return .stalled
    }
  }

  /// The time at which playback runs out of media, or a track has room again; nil if it does not play.
  package var nextTime: Duration? {
    guard case .playing = state else { return nil }
    var seconds = Double.infinity
    for (index, track) in tracks.enumerated() where !track.isComplete {
      let ahead = track.end - position
      seconds = min(seconds, ahead + tolerance(of: index))
      if !track.isFilling { seconds = min(seconds, ahead - rules.target * rules.refillShare) }
    }
    return seconds.isFinite ? now + .seconds(max(seconds, 0) / rate + Self.instant) : nil
  }

  /// The time at which playback is past a position, if nothing holds it up; nil if it does not play.
  package func time(of position: Double) -> Duration? {
    isPlaying ? now + .seconds(max(position - self.position, 0) / rate + Self.instant) : nil
  }

  // MARK: - Private

  /// The stall that ends now, if there is one.
  private var stall: LinkPlayback.Stall? {
    stalledSince.map { LinkPlayback.Stall(position: position, duration: now - $0, time: $0) }
  }

  private func keepsUp(_ needed: Double) -> Bool {
    var (ahead, isFilling) = (Double.infinity, false)
    for track in tracks where !track.isComplete {
      ahead = min(ahead, track.end - position)
      isFilling = isFilling || track.isFilling
    }
    // The position at a stall is late by an instant.
    return !isFilling || ahead > Self.instant && ahead >= min(needed, rules.target) - 10 * Self.instant
  }

  private func tolerance(of track: Int) -> Double { track == 0 ? 0 : Self.audioTolerance }
}
