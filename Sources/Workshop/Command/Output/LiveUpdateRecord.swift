import ReelCore
import ReelManifest
import ReelPlayback

/// A line of `reel manifest --follow`.
struct LiveUpdateRecord: Encodable {
  let time: String
  /// The origin of the update: the manifest, or the clock alone.
  let from: String
  let change: String
  let missed: Int?
  let windowStart: Double
  let windowEnd: Double
  let distanceFromClock: Double?
  let ended: Bool
  let segments: PrintedSegments.Placeholder = []

  init(_ update: LiveUpdate) {
    time = update.time.description
    from = update.isReading ? "manifest" : "clock"
    var missed: Int?
    switch update.change {
    case nil: change = "opened"
    case .grew: change = "grew"
    case .unchanged: change = "unchanged"
    case .steppedBack: change = "stepped_back"
    case .jumped(let count):
      change = "jumped"
      missed = count
    case .restarted: change = "restarted"
    }
    self.missed = missed
    windowStart = update.windowStart.seconds
    windowEnd = update.windowEnd.seconds
    distanceFromClock = update.distanceFromClock?.seconds
    ended = update.hasEnded
  }
}
