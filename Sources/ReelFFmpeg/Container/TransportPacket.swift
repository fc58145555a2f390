/// What packets of MPEG-TS look like (ISO/IEC 13818-1 §2.4.3.2).
package enum TransportPacket {
  package static let syncByte: UInt8 = 0x47
  package static let byteCount = 188
  /// Of what a stream is made of: packets alone; with a time stamp before each (BDAV); with check bytes behind each
  /// (EN 300 429).
  package static let sizes = [188, 192, 204]
}
