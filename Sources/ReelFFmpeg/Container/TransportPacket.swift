/// The packets of MPEG-TS (ISO/IEC 13818-1 §2.4.3.2).
package enum TransportPacket {
  package static let syncByte: UInt8 = 0x47
  package static let byteCount = 188
  /// The packet sizes: plain; with a time stamp before each packet (BDAV); with check bytes after each packet
  /// (EN 300 429).
  package static let sizes = [188, 192, 204]
}
