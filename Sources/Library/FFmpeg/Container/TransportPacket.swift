/// The packets of MPEG-TS (ISO/IEC 13818-1 §2.4.3.2).
package enum TransportPacket {
  package static let syncByte: UInt8 = 0x47
  package static let byteCount = 188
  /// The packet sizes: plain; with a time stamp before each packet (BDAV); with check bytes after each packet
  /// (EN 300 429).
  package static let sizes = [188, 192, 204]
  /// The number of bytes that are searched for a stream that does not begin with a packet.
  package static let searchedByteCount = 128 << 10
  /// The number of packets in a row that identify a stream after bytes that are none.
  private static let runCount = 4

  /// The first byte of the first packet in a run of four, and the size of these packets; nil if there is no such run. With
  /// time stamps, a packet begins with its time stamp.
  package static func run(in bytes: [UInt8]) -> (start: Int, size: Int)? {
    for sync in bytes.indices where bytes[sync] == syncByte {
      for size in sizes where isRun(of: runCount, from: sync, size: size, in: bytes) {
        let start = sync - (size == 192 ? 4 : 0)
        if start >= 0 { return (start, size) }
      }
    }
    return nil
  }

  /// True if packets of this size follow each other, the first one with its sync byte at `sync`.
  static func isRun(of count: Int, from sync: Int, size: Int, in bytes: [UInt8]) -> Bool {
    sync + (count - 1) * size < bytes.count
      && (0..<count).allSatisfy { bytes[sync + $0 * size] == syncByte }
  }
}
