import ReelCore
import ReelFFmpeg
import ReelPlayback

/// A shown frame as a line of `reel play --json --md5`. Its keys are those of `reel frames`.
struct PlayRecordFrame: Encodable {
  let event = "frame"
  let pts: Int64?
  let ptsTime: Double
  let timeBase: String
  let time: Double
  let timeMs: Double
  let keyFrame: Bool
  let damaged: Bool
  let md5: String

  /// `after` is the time since work on the source began. Throws `ReelError.internalFault` if memory has run
  /// out.
  init(_ frame: borrowing TimedFrame, after: Duration) throws(ReelError) {
    pts = frame.decoded.presentationTicks
    ptsTime = frame.ptsTime
    timeBase = frame.stream.timeBase.description
    time = frame.time.seconds.rounded(places: 6)
    timeMs = after.milliseconds
    keyFrame = frame.decoded.isKey
    damaged = frame.decoded.isDamaged
    md5 = try frame.decoded.md5()
  }
}
