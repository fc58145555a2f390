import ReelCore
import ReelFFmpeg
import ReelPlayback

/// A picture that was shown, as a line of `reel play --json --md5`; its keys are those of `reel frames`.
struct PlayRecordPicture: Encodable {
  let event = "picture"
  let pts: Int64?
  let ptsTime: Double
  let timeBase: String
  let time: Double
  let timeMs: Double
  let keyFrame: Bool
  let damaged: Bool
  let md5: String

  /// `after` is the time since the source was begun. Throws `ReelError.internalFault` where memory has run out.
  init(_ picture: borrowing TimedPicture, after: Duration) throws(ReelError) {
    pts = picture.frame.presentationTicks
    ptsTime = (Double(picture.frame.presentationTicks ?? 0) * picture.stream.timeBase.value).rounded(
      places: 6)
    timeBase = picture.stream.timeBase.description
    time = picture.time.seconds.rounded(places: 6)
    timeMs = after.milliseconds
    keyFrame = picture.frame.isKey
    damaged = picture.frame.isDamaged
    md5 = try picture.frame.md5()
  }
}
