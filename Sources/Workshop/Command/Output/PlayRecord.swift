import ReelCore
import ReelFFmpeg
import ReelPlayback

/// An event of `reel play`: a line of `--json`, or of text (`PlayText`).
///
/// Times on the item's timeline are in seconds.
struct PlayRecord: Encodable {
  struct Track: Encodable {
    let kind: String
    let codec: String
    let language: String?
    let width: Int?
    let height: Int?
    let frameRate: Double?
    let sampleRate: Int?
    let channels: Int?

    init(_ track: PlayerItem.Track) {
      kind = track.kind.rawValue
      codec = track.codec
      language = track.language
      width = track.size?.width
      height = track.size?.height
      frameRate = track.frameRate.map { $0.value.rounded(places: 6) }
      sampleRate = track.sampleRate
      channels = track.channelCount
    }
  }

  let event: String
  /// The position on show.
  var position: Double
  /// Since work on the source began.
  var timeMs: Double
  var status: String?
  /// Why playback waits.
  var reason: String?
  /// How long it took, or will take.
  var afterMs: Double?
  var fromRung: String?
  var toRung: String?
  /// Why another rung was chosen.
  var cause: String?
  var attempt: Int?
  var of: Int?
  var from: Double?
  var to: Double?
  var gapMs: Double?
  /// Nil for a live item.
  var duration: Double?
  var width: Int?
  var height: Int?
  var tracks: [Track]?
  var error: ErrorRecord?

  private init(_ event: String, position: MediaTime, after: Duration) {
    self.event = event
    self.position = position.seconds.rounded(places: 6)
    timeMs = after.milliseconds
  }

  /// - Parameters:
  ///   - position: The position on show.
  ///   - after: The time since work on the source began.
  init(_ status: TimeControlStatus, position: MediaTime, after: Duration) {
    self.init("status", position: position, after: after)
    switch status {
    case .paused: self.status = "paused"
    case .playing: self.status = "playing"
    case .waitingToPlay(let reason):
      self.status = "waiting_to_play"
      self.reason =
        switch reason {
        case .noItemToPlay: "no_item_to_play"
        case .evaluatingBufferingRate: "evaluating_buffering_rate"
        case .toMinimizeStalls: "to_minimize_stalls"
        }
    }
  }

  /// The item is ready to play.
  init(ready item: PlayerItem, position: MediaTime, after: Duration) {
    self.init("ready", position: position, after: after)
    duration = item.duration.value?.seconds.rounded(places: 6)
    width = item.presentationSize.value?.width
    height = item.presentationSize.value?.height
    tracks = item.tracks.value.map(Track.init)
  }

  /// `position` is used for events without a time of their own.
  init(_ event: PlayerEvent, position: MediaTime, after: Duration) {
    switch event {
    case .firstFrame(let time, let wait):
      self.init("first_frame", position: time, after: after)
      afterMs = wait.milliseconds
    case .seekDone(let time, let wait):
      self.init("seek_done", position: time, after: after)
      afterMs = wait.milliseconds
    case .stalled(let time):
      self.init("stalled", position: time, after: after)
    case .resumed(let time, let wait):
      self.init("resumed", position: time, after: after)
      afterMs = wait.milliseconds
    case .rungSwitched(let old, let new, let time, let cause):
      self.init("rung_switched", position: time, after: after)
      fromRung = old
      toRung = new
      self.cause = cause?.name
    case .retry(let attempt, let count, let wait, let error):
      self.init("retry", position: position, after: after)
      self.attempt = attempt
      of = count
      afterMs = wait.milliseconds
      self.error = ErrorRecord(error)
    case .segmentMissed(let start, let length, let error):
      self.init("segment_missed", position: position, after: after)
      from = start.seconds.rounded(places: 6)
      to = (start + length).seconds.rounded(places: 6)
      self.error = ErrorRecord(error)
    case .gapSkipped(let start, let end):
      self.init("gap_skipped", position: position, after: after)
      from = start.seconds.rounded(places: 6)
      to = end.seconds.rounded(places: 6)
    case .jumpedToLive(let start, let end):
      self.init("jumped_to_live", position: position, after: after)
      from = start.seconds.rounded(places: 6)
      to = end.seconds.rounded(places: 6)
    case .looped(let gap):
      self.init("looped", position: position, after: after)
      gapMs = gap.milliseconds
    case .playedToEnd(let time):
      self.init("played_to_end", position: time, after: after)
    case .failed(let error):
      self.init("failed", position: position, after: after)
      self.error = ErrorRecord(error)
    case .outputFailed(let error):
      self.init("output_failed", position: position, after: after)
      self.error = ErrorRecord(error)
    }
  }
}

extension RungSwitchCause {
  /// The name in JSON.
  var name: String {
    switch self {
    case .adaptationUp: "adaptation_up"
    case .adaptationDown: "adaptation_down"
    case .failure: "failure"
    case .retry: "retry"
    case .limit: "limit"
    case .startup: "startup"
    case .period: "period"
    }
  }
}
