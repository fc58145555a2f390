internal import ReelCore
import Testing

/// A number in so many bytes, the most significant first.
public func bigEndian(_ value: UInt64, bytes count: Int) -> [UInt8] {
  (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * UInt64($0))) }
}

/// A box of MP4.
public func mp4Box(_ type: String, _ body: [UInt8] = []) -> [UInt8] {
  bigEndian(UInt64(body.count + 8), bytes: 4) + Array(type.utf8) + body
}

/// A `pssh` box (ISO/IEC 23001-7 §8.1) of version 0, or of version 1 if there are key ids.
///
/// - Parameter system: The id of the system, a UUID.
public func psshBox(_ system: String, keyIDs: [String] = [], data: [UInt8] = []) throws -> [UInt8] {
  var body: [UInt8] = [keyIDs.isEmpty ? 0 : 1, 0, 0, 0]
  body += try #require(KeyID(system)).bytes
  if !keyIDs.isEmpty {
    body += bigEndian(UInt64(keyIDs.count), bytes: 4)
    for id in keyIDs { body += try #require(KeyID(id)).bytes }
  }
  return mp4Box("pssh", body + bigEndian(UInt64(data.count), bytes: 4) + data)
}

/// The header of a box that gives its size in 64 bits.
public func longMP4Header(_ type: String, byteCount: UInt64) -> [UInt8] {
  bigEndian(1, bytes: 4) + Array(type.utf8) + bigEndian(byteCount, bytes: 8)
}

extension [UInt8] {
  /// Adds to the composition offsets of the fragment at an index; its `trun` gets version 1.
  package mutating func moveCompositionOffsets(ofFragment index: Int, by ticks: Int32) throws {
    let places = indices.dropLast(4).filter { self[$0..<$0 + 4].elementsEqual("trun".utf8) }
    try #require(index < places.count)
    let body = places[index] + 4
    let flags = self[body + 2]
    try #require(flags & 0x8 != 0)
    self[body] = 1
    let count = Int(self[body + 4..<body + 8].bigEndianNumber)
    let head = 8 + 4 * (self[body + 3] & 0x5).nonzeroBitCount
    let size = 4 * (flags & 0xf).nonzeroBitCount
    for sample in 0..<count {
      let place = body + head + (sample + 1) * size - 4
      let old = Int32(truncatingIfNeeded: self[place..<place + 4].bigEndianNumber)
      replaceSubrange(
        place..<place + 4, with: [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: (old &+ ticks) >> $0) })
    }
  }
}
