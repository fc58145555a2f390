internal import Logging
internal import ReelCore
internal import ReelFFmpeg

/// The pictures of one source's video track in presentation order, whatever the source is.
///
/// Confined to a thread that may block.
protocol VideoTrackReader: AnyObject {
  /// The earliest picture from where the track stands, for the fewest bytes; nil where there is none. Only as the
  /// first call, or after a seek.
  func firstPicture() throws -> TimedPicture?
  func nextPicture() throws -> TimedPicture?
  /// Goes to a key frame at or before `time`, or as near to it as the source allows.
  func seek(to time: MediaTime) throws
  /// True where a seek to `time` saves work over reading on from `position`.
  func isSeekWorthwhile(to time: MediaTime, from position: MediaTime) -> Bool
  /// Of the container that is open now.
  var picture: PictureReader? { get }
  /// Totals over all containers that were opened.
  var timing: PictureReader.Timing { get }
  var damagedCount: Int { get }
}

extension PictureReader.Timing {
  static func + (left: Self, right: Self) -> Self {
    var sum = left
    sum.source += right.source
    sum.demux += right.demux
    sum.decode += right.decode
    return sum
  }
}
