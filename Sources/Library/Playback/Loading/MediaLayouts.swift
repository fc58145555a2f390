internal import ReelCore
internal import ReelFFmpeg

/// The position of the index of an MP4 or QuickTime file, according to its top-level boxes (ISO/IEC 14496-12
/// §4.2, §6.2).
enum MP4Layout: Sendable, Hashable {
  /// `moov` comes before the media: the file can be read forward.
  case indexFirst(isFragmented: Bool)
  /// Media comes first: `moov` follows it and must be fetched from there.
  case indexLast
  /// The first bytes do not determine it.
  case unknown

  /// - Parameter bytes: The first bytes of the file.
  init(prefix bytes: [UInt8], format: ContainerFormat) {
    self = format == .matroska ? MP4Layout(matroskaPrefix: bytes) : MP4Layout(prefix: bytes)
  }

  /// - Parameter bytes: The first bytes of the file.
  init(prefix bytes: [UInt8]) {
    var rest = bytes[...]
    while let type = MP4BoxHeader.type(in: rest) {
      let byteCount = MP4BoxHeader(rest)?.byteCount
      switch type {
      case "moov":
        let movie = rest.prefix(Int(clamping: byteCount ?? .max))
        self = .indexFirst(isFragmented: Self.contains("mvex", in: movie))
        return
      case "mdat":
        self = .indexLast
        return
      case "moof", "styp", "sidx":
        self = .indexFirst(isFragmented: true)
        return
      default:
        guard let byteCount, byteCount >= 8, byteCount < 1 << 40 else {
          self = .unknown
          return
        }
        rest = rest.dropFirst(Int(byteCount))
      }
    }
    self = .unknown
  }

  private static func contains(_ type: String, in bytes: ArraySlice<UInt8>) -> Bool {
    let wanted = Array(type.utf8)
    guard bytes.count >= 4 else { return false }
    return (bytes.startIndex...(bytes.endIndex - 4)).contains {
      bytes[$0] == wanted[0] && bytes[$0..<($0 + 4)].elementsEqual(wanted)
    }
  }
}

extension MP4Layout {
  /// Finds whether the track descriptions (`Tracks`) of a Matroska or WebM file precede the media. Some files have
  /// them after the media, where only `SeekHead` leads to them (RFC 9559 §4.5, §5.1.1).
  ///
  /// - Parameter bytes: The first bytes of the file.
  init(matroskaPrefix bytes: [UInt8]) {
    var rest = bytes[...]
    var isInSegment = false
    while let element = EBMLHeader(rest) {
      rest = rest.dropFirst(element.headerByteCount)
      switch element.id {
      case EBMLHeader.ID.segment where !isInSegment:
        isInSegment = true
        continue
      case EBMLHeader.ID.tracks where isInSegment:
        self = .indexFirst(isFragmented: false)
        return
      case EBMLHeader.ID.cluster where isInSegment:
        self = .indexLast
        return
      default: break
      }
      guard let size = element.contentByteCount else { break }
      rest = rest.dropFirst(Int(clamping: size))
    }
    self = .unknown
  }
}
