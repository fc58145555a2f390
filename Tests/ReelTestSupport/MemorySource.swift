package import ReelCore
package import ReelFFmpeg

/// Bytes in memory as a demuxer reads them, so many at a time.
package final class MemorySource: ByteSource {
  package let byteCount: Int64?
  package let isSeekable: Bool
  private let bytes: [UInt8]
  private let chunkByteCount: Int
  package private(set) var offset = 0
  /// The highest byte that was asked for.
  package private(set) var reach = 0
  /// Thrown where the bytes end, in place of an end.
  package var errorAtEnd: (any Error)?

  package init(_ bytes: [UInt8], chunkByteCount: Int = .max, isSeekable: Bool = true) {
    self.bytes = bytes
    self.chunkByteCount = chunkByteCount
    self.isSeekable = isSeekable
    byteCount = isSeekable ? Int64(bytes.count) : nil
  }

  package func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    let count = min(buffer.count, chunkByteCount, bytes.count - offset)
    if count <= 0 {
      if let errorAtEnd { throw errorAtEnd }
      return 0
    }
    buffer.copyBytes(from: bytes[offset..<(offset + count)])
    offset += count
    reach = max(reach, offset)
    return count
  }

  package func seek(to offset: Int64) throws {
    guard isSeekable else { throw ReelError(.internalFault, "sought to \(offset) from \(self.offset)") }
    self.offset = Int(offset)
  }
}

/// Supplies the access units of a list.
package final class ListedUnits: AccessUnitSource {
  package var next = 0
  private let packets: [Packet]

  package init(_ packets: [Packet]) { self.packets = packets }

  package func nextUnit() -> Pulled<Packet> {
    guard next < packets.count else { return .end }
    next += 1
    return .element(packets[next - 1])
  }

  package func didOpen(_ opening: OpeningPicture) {}
}
