extension MP4Layout {
  /// Finds whether the track descriptions (`Tracks`) of a Matroska or WebM file precede the media. Some files have
  /// them after the media, where only `SeekHead` leads to them (RFC 9559 §4.5, §5.1.1).
  ///
  /// - Parameter bytes: The first bytes of the file. If they do not show the order, the usual one is assumed.
  init(matroskaPrefix bytes: [UInt8]) {
    var offset = 0
    var depth = 0
    while let element = Self.element(at: offset, in: bytes) {
      switch element.id {
      case Self.segment where depth == 0:
        depth = 1
        offset = element.start
        continue
      case Self.tracks where depth == 1:
        self = .indexFirst(isFragmented: false)
        return
      case Self.cluster where depth == 1:
        self = .indexLast
        return
      default: break
      }
      guard let size = element.size, size < 1 << 40 else { break }
      offset = element.start + size
    }
    self = .unknown
  }

  // MARK: - Private

  private static let segment = 0x1853_8067
  private static let tracks = 0x1654_ae6b
  private static let cluster = 0x1f43_b675

  /// The id of an EBML element, the start of its content and the content's size, which is nil if unknown (RFC 8794 §4
  /// to §6).
  private static func element(at offset: Int, in bytes: [UInt8]) -> (id: Int, start: Int, size: Int?)? {
    guard let id = number(at: offset, in: bytes), let size = number(at: id.end, in: bytes) else { return nil }
    let marker = 1 << (7 * (size.end - id.end))
    return (id.value, size.end, size.value - marker == marker - 1 ? nil : size.value - marker)
  }

  /// A variable-length number, including its length marker.
  private static func number(at offset: Int, in bytes: [UInt8]) -> (value: Int, end: Int)? {
    guard offset < bytes.count else { return nil }
    let count = bytes[offset].leadingZeroBitCount + 1
    guard count <= 8, offset + count <= bytes.count else { return nil }
    return (bytes[offset..<(offset + count)].reduce(0) { $0 << 8 | Int($1) }, offset + count)
  }
}
