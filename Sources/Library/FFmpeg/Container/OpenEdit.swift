internal import ReelCore

/// Mends edit lists whose only edit has no length.
///
/// In a file without fragments, such an edit would leave out the whole track, and libavformat reads it so. Players take it as
/// an edit up to the end of the track, which it is in fragmented files (ISO/IEC 14496-12 §8.6.6).
enum OpenEdit {
  /// Gives such an edit of a `moov` box a length beyond its track. No byte moves.
  static func mend(_ movie: inout [UInt8]) {
    for box in MP4Box.all(["moov", "trak", "edts", "elst"], in: movie[...]) {
      let body = movie[box.body]
      // The length and the start of an edit come after version, flags and the number of edits.
      let width = body.first == 1 ? 8 : 4
      let length = body.dropFirst(8).prefix(width)
      let start = body.dropFirst(8 + width).prefix(width)
      guard body.dropFirst(4).prefix(4).bigEndianNumber == 1, start.count == width,
        length.allSatisfy({ $0 == 0 }), start.first.map({ $0 < 0x80 }) ?? false
      else { continue }
      for index in length.indices.suffix(width == 8 ? 5 : 4) { movie[index] = 0xff }
    }
  }
}
