package import ReelCore

/// The lines of a playlist (RFC 8216 §4.1), without the white space at their ends and without empty ones.
///
/// A line ends with a line feed, with a carriage return and a line feed, or, as no playlist should have it, with a
/// carriage return alone.
package struct PlaylistLines: Sendable {
  let bytes: [UInt8]
  /// The number of the line that `next()` gave last, from 1.
  package private(set) var number = 0
  /// That line as it stands, with its white space, without what ends it.
  package private(set) var whole = 0..<0
  private var position: Int
  /// The first line feed at or after `position`. It is kept, for a text of carriage returns alone would be searched
  /// to its end at each of them.
  private var nextFeed = -1
  /// The first carriage return at or after `position`: most playlists have none, and are searched for it once.
  private var nextReturn: Int

  package init(_ bytes: [UInt8]) {
    self.bytes = bytes
    position = bytes.has("\u{FEFF}", at: 0) ? 3 : 0
    nextReturn = bytes.firstIndex(of: 0x0D, in: position..<bytes.count) ?? bytes.count
  }

  /// The place of the line that `next()` gave last.
  package var place: ReelError.Place { .line(number) }

  /// The range of the next line in `bytes`; nil at the end.
  package mutating func next() -> Range<Int>? {
    while position < bytes.count {
      if nextFeed < position {
        nextFeed = bytes.firstIndex(of: 0x0A, in: position..<bytes.count) ?? bytes.count
      }
      let feed = nextFeed
      var (end, next) = (feed, feed + 1)
      if nextReturn < feed {
        end = nextReturn
        if nextReturn + 1 < feed { next = nextReturn + 1 }
        nextReturn = bytes.firstIndex(of: 0x0D, in: min(next, bytes.count)..<bytes.count) ?? bytes.count
      }
      whole = position..<end
      let line = bytes.trimmed(whole)
      position = next
      number += 1
      if !line.isEmpty { return line }
    }
    return nil
  }
}
