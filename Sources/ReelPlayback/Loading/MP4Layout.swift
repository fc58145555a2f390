internal import ReelFFmpeg

/// Where the index of an MP4 or QuickTime file stands, read off its top-level boxes (ISO/IEC 14496-12 §4.2, §6.2).
enum MP4Layout: Sendable, Hashable {
  /// `moov` comes before the media: the file can be read forward.
  case indexFirst(isFragmented: Bool)
  /// Media comes first: `moov` has to be fetched from behind it.
  case indexLast
  /// The first bytes don't tell.
  case unknown

  /// - Parameter bytes: The first bytes of the file.
  init(prefix bytes: [UInt8], format: ContainerFormat) {
    self = format == .matroska ? MP4Layout(matroskaPrefix: bytes) : MP4Layout(prefix: bytes)
  }

  /// - Parameter bytes: The first bytes of the file.
  init(prefix bytes: [UInt8]) {
    var offset = 0
    while offset + 8 <= bytes.count {
      let type = String(decoding: bytes[(offset + 4)..<(offset + 8)], as: UTF8.self)
      switch type {
      case "moov":
        let end = Self.size(at: offset, in: bytes).map { min(bytes.count, offset + $0) } ?? bytes.count
        self = .indexFirst(isFragmented: Self.contains("mvex", in: bytes[offset..<max(offset, end)]))
        return
      case "mdat":
        self = .indexLast
        return
      case "moof", "styp", "sidx":
        self = .indexFirst(isFragmented: true)
        return
      default:
        guard let size = Self.size(at: offset, in: bytes), size >= 8, size < 1 << 40 else {
          self = .unknown
          return
        }
        offset += size
      }
    }
    self = .unknown
  }

  /// The size of the box at `offset`; nil where it goes to the end of the file or is not there.
  private static func size(at offset: Int, in bytes: [UInt8]) -> Int? {
    let short = number(bytes[offset..<(offset + 4)])
    if short != 1 { return short == 0 ? nil : Int(exactly: short) }
    guard offset + 16 <= bytes.count else { return nil }
    return Int(exactly: number(bytes[(offset + 8)..<(offset + 16)]))
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }

  private static func contains(_ type: String, in bytes: ArraySlice<UInt8>) -> Bool {
    let wanted = Array(type.utf8)
    guard bytes.count >= 4 else { return false }
    return (bytes.startIndex...(bytes.endIndex - 4)).contains {
      bytes[$0] == wanted[0] && bytes[$0..<($0 + 4)].elementsEqual(wanted)
    }
  }
}
