package import ReelCore
import ReelFFmpeg
package import ReelPlayback

/// A picture with its place on a timeline.
package struct Shown: Hashable, Sendable, CustomStringConvertible {
  package let time: MediaTime
  package let md5: String

  package init(time: MediaTime, md5: String) {
    self.time = time
    self.md5 = md5
  }

  package init(_ picture: borrowing TimedPicture) throws {
    self.init(time: picture.time, md5: try picture.frame.md5())
  }

  package var description: String { "\(time) \(md5.prefix(6))" }
}
