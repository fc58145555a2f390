/// The bytes of a frame (RFC 9113 §4.1).
struct HTTP2Frame {
  enum Kind: UInt8 {
    case data, headers, priority, resetStream, settings, pushPromise, ping, goAway, windowUpdate, continuation
  }

  static let endStream: UInt8 = 1
  static let endHeaders: UInt8 = 4

  let bytes: [UInt8]

  init(_ kind: Kind, flags: UInt8 = 0, stream: Int = 0, _ payload: [UInt8] = []) {
    self.init(type: kind.rawValue, flags: flags, stream: stream, payload)
  }

  init(type: UInt8, flags: UInt8 = 0, stream: Int = 0, _ payload: [UInt8] = []) {
    let head = [payload.count >> 16, payload.count >> 8, payload.count].map { UInt8($0 & 0xFF) }
    let stream = (0..<4).map { UInt8(stream >> (24 - 8 * $0) & 0xFF) }
    bytes = head + [type, flags] + stream + payload
  }

  /// A head with a status, and fields if any.
  static func head(
    _ status: String, _ fields: [(String, String)] = [], stream: Int, isEnd: Bool = false
  ) -> [UInt8] {
    let block = Self.block([(":status", status)] + fields)
    return HTTP2Frame(.headers, flags: endHeaders | (isEnd ? endStream : 0), stream: stream, block).bytes
  }

  static func data(_ bytes: [UInt8], stream: Int, isEnd: Bool = true) -> [UInt8] {
    HTTP2Frame(.data, flags: isEnd ? endStream : 0, stream: stream, bytes).bytes
  }

  /// A promise of the stream `promised`.
  static func pushPromise(_ promised: UInt8, stream: Int) -> [UInt8] {
    let fields = [(":method", "GET"), (":scheme", "https"), (":path", "/b"), (":authority", "a")]
    let payload = [0, 0, 0, promised] + block(fields)
    return HTTP2Frame(.pushPromise, flags: endHeaders, stream: stream, payload).bytes
  }

  /// Literal fields that are not indexed (RFC 7541 §6.2.2), of names and values of less than 127 bytes.
  private static func block(_ fields: [(name: String, value: String)]) -> [UInt8] {
    var bytes: [UInt8] = []
    for field in fields {
      bytes.append(0)
      for text in [field.name, field.value] { bytes += [UInt8(text.utf8.count)] + Array(text.utf8) }
    }
    return bytes
  }
}
