import ReelCore

/// The lines of a playlist (RFC 8216 §4.1), without the white space at their ends and without empty ones.
struct PlaylistLines: Sendable {
  let bytes: [UInt8]
  /// The number of the line that `next()` gave last, from 1.
  private(set) var number = 0
  private var position: Int

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    position = bytes.has("\u{FEFF}", at: 0) ? 3 : 0
  }

  /// The place of the line that `next()` gave last.
  var place: ReelError.Place { .line(number) }

  /// Where the next line stands in `bytes`, or nil at the end.
  mutating func next() -> Range<Int>? {
    while position < bytes.count {
      let end = bytes.firstIndex(of: 0x0A, in: position..<bytes.count) ?? bytes.count
      let line = bytes.trimmed(position..<end)
      position = end + 1
      number += 1
      if !line.isEmpty { return line }
    }
    return nil
  }
}
