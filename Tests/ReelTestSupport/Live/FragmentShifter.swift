import ReelCore

/// Moves fragmented MP4 segments along their timeline, by their `tfdt` (ISO/IEC 14496-12 §8.8.12) and `sidx`
/// (§8.16.3).
struct FragmentShifter: Sendable {
  /// Ticks per second by track ID.
  private let timescales: [UInt32: Int32]

  /// - Parameter initialization: The initialization segment, whose `moov` names the timescales.
  ///
  /// Throws `unsupported` where there is none in it.
  init(initialization: [UInt8]) throws(ReelError) {
    var timescales: [UInt32: Int32] = [:]
    for movie in MP4Box.all(in: initialization[...]) where movie.type == "moov" {
      for track in MP4Box.all(in: initialization[movie.body]) where track.type == "trak" {
        var (id, timescale): (UInt64, UInt64) = (0, 0)
        for box in MP4Box.all(in: initialization[track.body]) {
          if box.type == "tkhd" { id = Self.field(initialization, box, narrow: 12, wide: 20) }
          guard box.type == "mdia" else { continue }
          for header in MP4Box.all(in: initialization[box.body]) where header.type == "mdhd" {
            timescale = Self.field(initialization, header, narrow: 12, wide: 20)
          }
        }
        timescales[UInt32(truncatingIfNeeded: id)] = Int32(clamping: timescale)
      }
    }
    guard !timescales.isEmpty else {
      throw ReelError(.unsupported, "only fragmented MP4 can be moved along its timeline")
    }
    self.timescales = timescales
  }

  /// `segment` as it would be `length` later. Times of 32 bits that become too large wrap around.
  func shifted(_ segment: [UInt8], by length: MediaTime) -> [UInt8] {
    var bytes = segment
    for box in MP4Box.all(in: segment[...]) {
      if box.type == "sidx", box.body.count >= 20 {
        let timescale = Int32(clamping: Self.number(segment, at: box.body.lowerBound + 8, count: 4))
        Self.add(length.ticks(timescale: timescale), to: &bytes, at: box.body.lowerBound, 12)
      }
      guard box.type == "moof" else { continue }
      for fragment in MP4Box.all(in: segment[box.body]) where fragment.type == "traf" {
        let parts = MP4Box.all(in: segment[fragment.body])
        guard let header = parts.first(where: { $0.type == "tfhd" }), header.body.count >= 8 else { continue }
        let id = UInt32(Self.number(segment, at: header.body.lowerBound + 4, count: 4))
        guard let timescale = timescales[id] else { continue }
        for time in parts where time.type == "tfdt" && time.body.count >= 8 {
          Self.add(length.ticks(timescale: timescale), to: &bytes, at: time.body.lowerBound, 4)
        }
      }
    }
    return bytes
  }

  // MARK: - Private

  /// A field of 32 bits whose place in the body depends on the version of the box.
  private static func field(_ bytes: [UInt8], _ box: MP4Box, narrow: Int, wide: Int) -> UInt64 {
    let isWide = box.body.first.map { bytes[$0] == 1 } ?? false
    let place = box.body.lowerBound + (isWide ? wide : narrow)
    return place + 4 <= box.body.upperBound ? number(bytes, at: place, count: 4) : 0
  }

  private static func number(_ bytes: [UInt8], at place: Int, count: Int) -> UInt64 {
    bytes[place..<place + count].bigEndianNumber
  }

  /// Adds to the time that stands `offset` bytes into a body, with 64 bits in version 1 and 32 in version 0.
  private static func add(_ ticks: Int64, to bytes: inout [UInt8], at body: Int, _ offset: Int) {
    let count = bytes[body] == 1 ? 8 : 4
    let place = body + offset
    guard place + count <= bytes.count else { return }
    var value = number(bytes, at: place, count: count) &+ UInt64(bitPattern: ticks)
    for index in (place..<place + count).reversed() {
      bytes[index] = UInt8(truncatingIfNeeded: value)
      value >>= 8
    }
  }
}
