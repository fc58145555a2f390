package import ReelCore
package import ReelFFmpeg
package import ReelManifest

/// The format of a source, detected from its content.
package enum SourceKind: Sendable, Hashable {
  case manifest(ManifestFormat)
  case media(ContainerFormat)
  /// A format that Reel does not play, described in words.
  case other(String, ReelError.Found = .notMedia)
}

/// Detects the format of a source from its first bytes. File names and media types are ignored.
package enum SourceSniffer {
  /// The number of bytes that are enough to detect the format, unless the source is shorter.
  package static let byteCount = TextFormat.byteCount
  /// The number of bytes to inspect if `needsMore` is true.
  package static let largestByteCount = TransportPacket.searchedByteCount

  /// Returns the format of a source that begins with `bytes`.
  package static func kind(of bytes: [UInt8]) -> SourceKind {
    if bytes.isEmpty { return .other("empty") }
    switch TextFormat(bytes) {
    case .manifest(let format): return .manifest(format)
    case .other(let what): return .other(what)
    case nil: break
    }
    if let media = mediaKind(bytes) { return .media(media) }
    if TransportPacket.run(in: bytes) != nil { return .media(.mpegTS) }
    // More bytes would make the guess less certain: any long data resembles some stream.
    switch ContainerProbe.guess(Array(bytes.prefix(byteCount))) {
    case .supported(let format): return .media(format)
    case .unsupported(let name): return .other("an unsupported container (\(name))", .unsupportedContainer)
    case .unknown:
      return .other(TextFormat.isText(bytes) ? "plain text" : "an unknown format")
    }
  }

  /// Returns true if no format was recognised in `bytes`, the first ones of a source, but MPEG-TS packets may
  /// follow after other bytes.
  package static func needsMore(_ bytes: [UInt8]) -> Bool {
    guard bytes.count < largestByteCount, !bytes.isEmpty, !TextFormat.isText(bytes),
      case .other = kind(of: bytes)
    else {
      return false
    }
    return true
  }

  // MARK: - Private

  private static func mediaKind(_ bytes: [UInt8]) -> ContainerFormat? {
    if isMP4(bytes) { return .mp4 }
    if bytes.starts(with: [0x1a, 0x45, 0xdf, 0xa3]) { return .matroska }
    // pack_start_code (ISO/IEC 13818-1 §2.5.3.3)
    if bytes.starts(with: [0, 0, 1, 0xba]) { return .mpegPS }
    if bytes.starts(with: "FLV".utf8) { return .flv }
    if bytes.starts(with: "DKIF".utf8) { return .ivf }
    if bytes.starts(with: "RIFF".utf8), bytes.count >= 12, bytes[8..<11].elementsEqual("AVI".utf8) {
      return .avi
    }
    return isTransportStream(bytes) ? .mpegTS : elementaryStream(bytes) ?? PackedAudio.format(of: bytes)
  }

  /// Returns true for a box of a known type, also after boxes of unknown types.
  private static func isMP4(_ bytes: [UInt8]) -> Bool {
    var rest = bytes[...]
    while let type = MP4BoxHeader.type(in: rest) {
      if boxTypes.contains(type) { return true }
      guard let header = MP4BoxHeader(rest), header.isPlausible, let byteCount = header.byteCount,
        byteCount < UInt64(rest.count)
      else { return false }
      rest = rest.dropFirst(Int(byteCount))
    }
    return false
  }

  /// Detects raw H.264 or HEVC (Annex B): parameter sets after start codes, from the first byte on.
  /// libavformat's probe detects them too, but gives up if two codecs seem equally likely.
  private static func elementaryStream(_ bytes: [UInt8]) -> ContainerFormat? {
    let zeros = bytes.prefix { $0 == 0 }.count
    // forbidden_zero_bit. Other MPEG streams have larger values after their start codes.
    guard zeros >= 2, zeros + 1 < bytes.count, bytes[zeros] == 1, bytes[zeros + 1] < 0x80 else { return nil }
    var (hasVPS, hasSPS) = (false, false)
    var (hasSlice, isH264) = (false, true)
    for index in 0..<(bytes.count - 4)
    where bytes[index] == 0 && bytes[index + 1] == 0 && bytes[index + 2] == 1 {
      let (header, next) = (bytes[index + 3], bytes[index + 4])
      // HEVC: type in bits 1 to 6, layer 0, temporal id 0.
      if header == 0x40, next == 1 { hasVPS = true }
      if header == 0x42, next == 1 { hasSPS = true }
      if hasVPS, hasSPS { return .hevc }
      if header & 0x9f == 7, h264Profiles.contains(next) { return .h264 }
      hasSlice = hasSlice || header & 0x1f == 1 || header & 0x1f == 5
      isH264 = isH264 && isH264Header(header)
    }
    // A truncated recording has its parameter sets later in the file.
    return hasSlice && isH264 ? .h264 : nil
  }

  /// Returns true if nal_ref_idc is plausible for the type of unit (ISO/IEC 14496-10 §7.4.1). Rejects data
  /// partitions.
  private static func isH264Header(_ header: UInt8) -> Bool {
    let isReference = header & 0x60 != 0
    return switch header & 0x9f {
    case 1: true
    case 5, 7, 8, 13, 15: isReference
    case 6, 9...12: !isReference
    default: false
    }
  }

  /// `profile_idc` (ISO/IEC 14496-10 Annex A and H).
  private static let h264Profiles: Set<UInt8> = [66, 77, 88, 100, 110, 122, 244, 44, 83, 86, 118, 128]

  /// Boxes that an MP4 or QuickTime file may begin with.
  private static let boxTypes: Set<FourCC> = [
    "ftyp", "styp", "moov", "moof", "mdat", "sidx", "free", "skip", "wide", "emsg", "pnot", "prft", "uuid",
    "pdin",
  ]

  /// Sync bytes at one of the three packet sizes, from the first offset that has one.
  private static func isTransportStream(_ bytes: [UInt8]) -> Bool {
    for size in TransportPacket.sizes {
      for start in 0..<min(size, bytes.count) where bytes[start] == TransportPacket.syncByte {
        let positions = Array(stride(from: start, to: bytes.count, by: size).prefix(8))
        let enough = bytes.count == size ? 1 : min(4, max(2, (bytes.count - start) / size))
        if positions.count >= enough, positions.allSatisfy({ bytes[$0] == TransportPacket.syncByte }) {
          return start == 0 || positions.count >= 4
        }
      }
    }
    return false
  }
}

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
