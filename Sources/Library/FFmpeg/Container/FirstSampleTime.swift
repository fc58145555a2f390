internal import ReelCore

/// Mends the presentation time of the first sample of a fragment.
///
/// Where frames of a fragment are shown before its key frame (an open GOP), libavformat's muxer gives the key frame the time
/// of the earliest of them, so that the times of the segment index are right (ff_mov_write_packet, FFmpeg 5.1 to 8). Two
/// frames then have one time, and one time has no frame: that of the key frame.
enum FirstSampleTime {
  /// Changes a `moof` box whose first sample has the time of another one. No byte moves.
  static func mend(_ bytes: inout [UInt8]) {
    guard let movie = MP4Box.all(in: bytes, 0..<bytes.count).first else { return }
    for box in MP4Box.all(in: bytes, movie.body) where box.type == "traf" {
      let inner = MP4Box.all(in: bytes, box.body)
      let runs = inner.filter { $0.type == "trun" }
      guard runs.count == 1, let header = inner.first(where: { $0.type == "tfhd" }),
        let run = Run(bytes[runs[0].body], duration: defaultDuration(bytes[header.body])),
        let offset = run.rightOffset, let field = UInt32(exactly: offset)
      else { continue }
      for (index, shift) in [24, 16, 8, 0].enumerated() {
        bytes[run.firstOffsetPosition + index] = UInt8(truncatingIfNeeded: field >> UInt32(shift))
      }
    }
  }

  // MARK: - Private

  /// The duration of samples that `tfhd` states (ISO/IEC 14496-12 §8.8.7); nil if it states none.
  private static func defaultDuration(_ body: ArraySlice<UInt8>) -> Int64? {
    let flags = body.prefix(4).bigEndianNumber
    let head = 8 + (flags & 0x1 != 0 ? 8 : 0) + (flags & 0x2 != 0 ? 4 : 0)
    let field = body.dropFirst(head).prefix(4)
    return flags & 0x8 != 0 && field.count == 4 ? Int64(field.bigEndianNumber) : nil
  }

  /// The times of the samples of one `trun` box (ISO/IEC 14496-12 §8.8.8), from the decoding time of the first.
  private struct Run {
    let firstOffsetPosition: Int
    private let duration: Int64
    private var times: [Int64] = []

    /// Nil for a run without composition offsets, and for one of other than equal durations.
    init?(_ body: ArraySlice<UInt8>, duration: Int64?) {
      let flags = body.prefix(4).bigEndianNumber
      let head = 8 + 4 * (flags & 0x5).nonzeroBitCount
      let byteCount = 4 * (flags & 0xf00).nonzeroBitCount
      var rest = body.dropFirst(head)
      guard flags & 0x800 != 0, rest.count >= 3 * byteCount else { return nil }
      let stated = flags & 0x100 != 0 ? Int64(rest.prefix(4).bigEndianNumber) : duration
      guard let stated, stated > 0 else { return nil }
      self.duration = stated
      firstOffsetPosition = rest.startIndex + byteCount - 4
      while rest.count >= byteCount {
        let fields = rest.prefix(byteCount)
        if flags & 0x100 != 0, rest.count >= 2 * byteCount, Int64(fields.prefix(4).bigEndianNumber) != stated
        {
          return nil
        }
        let offset = Int32(truncatingIfNeeded: fields.suffix(4).bigEndianNumber)
        times.append(Int64(times.count) * stated + Int64(offset))
        rest = rest.dropFirst(byteCount)
      }
    }

    /// The first sample's composition offset, if it has the time of the earliest other sample: the first time at which
    /// there is no frame.
    var rightOffset: Int64? {
      let others = times.dropFirst().sorted()
      // The fields of a frame may have one time.
      guard let first = times.first, first == others.first, zip(others, others.dropFirst()).allSatisfy(<)
      else { return nil }
      for (time, next) in zip(others, others.dropFirst()) where next != time + duration {
        return next == time + 2 * duration ? time + duration : nil
      }
      return others.last.map { $0 + duration }
    }
  }
}
