package import ReelCore
import ReelFFmpeg
package import ReelReading

/// A frame with its place on a timeline.
package struct Shown: Hashable, Sendable, CustomStringConvertible {
  package let time: MediaTime
  package let md5: String

  package init(time: MediaTime, md5: String) {
    self.time = time
    self.md5 = md5
  }

  package init(_ frame: VideoFrame) throws {
    self.init(time: frame.time, md5: try frame.md5())
  }

  package var description: String { "\(time) \(md5.prefix(6))" }
}
