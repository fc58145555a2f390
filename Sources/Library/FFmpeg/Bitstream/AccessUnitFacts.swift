internal import CFFmpeg
internal import ReelCore

/// Facts about an access unit that matter to a decoder that begins with it.
package struct AccessUnitFacts: Sendable, Hashable {
  /// How decoding can start at it.
  package let entry: OpeningPicture.Entry
  /// True if it has a picture.
  package let hasPicture: Bool
  /// HEVC: true for a leading picture that can't be decoded after a start at the random access point before it (RASL,
  /// ISO/IEC 23008-2 §3).
  package let isSkippedAtStart: Bool
  /// True if the unit itself, or the container, has a sequence and a picture parameter set. True for other codecs.
  package let hasParameterSets: Bool
}

extension StreamInfo {
  /// Describes an access unit of the stream.
  package func facts(of packet: Packet) -> AccessUnitFacts {
    let opening = OpeningPicture(packet, codec: videoCodec, framing: nalFraming)
    let slice = videoCodec == .hevc ? packet.firstSlice(codec: .hevc, framing: nalFraming) : nil
    return AccessUnitFacts(
      entry: opening.entry, hasPicture: opening.hasPicture,
      isSkippedAtStart: slice.map { $0.type == 8 || $0.type == 9 } ?? false,
      hasParameterSets: hasConfiguredParameterSets || hasParameterSets(in: packet))
  }

  /// The configuration of the codec in the container: `avcC`, `hvcC`, AudioSpecificConfig. Empty without one.
  package var configuration: [UInt8] {
    let parameters = parameters.pointer.pointee
    return Array(
      UnsafeRawBufferPointer(start: parameters.extradata, count: Int(parameters.extradata_size)))
  }

  // MARK: - Private

  private func hasParameterSets(in packet: Packet) -> Bool {
    guard let codec = videoCodec, codec == .h264 || codec == .hevc else { return true }
    var types: Set<UInt8> = []
    packet.firstSlice(codec: codec, framing: nalFraming) { header, _ in types.insert(header.type) }
    return types.isSuperset(of: Self.parameterSetTypes(of: codec))
  }

  private var hasConfiguredParameterSets: Bool {
    guard let codec = videoCodec, codec == .h264 || codec == .hevc else { return true }
    let configuration = configuration
    return configuration.withUnsafeBytes { bytes in
      var types: Set<UInt8> = []
      if codec == .hevc, case .lengthPrefixed = nalFraming {
        types = Self.arrayTypes(ofHVCC: bytes)
      } else {
        bytes.forEachConfigurationUnit(framing: nalFraming) { unit in
          if let header = NALUnitHeader(codec: codec, bytes: unit) { types.insert(header.type) }
        }
      }
      return types.isSuperset(of: Self.parameterSetTypes(of: codec))
    }
  }

  private static func parameterSetTypes(of codec: VideoCodec) -> Set<UInt8> {
    codec == .h264 ? [7, 8] : [33, 34]
  }

  /// Returns the types of the units in an `hvcC` record (ISO/IEC 14496-15 §8.3.3.1).
  private static func arrayTypes(ofHVCC bytes: UnsafeRawBufferPointer) -> Set<UInt8> {
    guard bytes.count > 22 else { return [] }
    var types: Set<UInt8> = []
    var offset = 23
    for _ in 0..<bytes[22] {
      guard offset + 3 <= bytes.count else { break }
      let (type, count) = (bytes[offset] & 0x3f, Int(bytes[offset + 1]) << 8 | Int(bytes[offset + 2]))
      offset += 3
      for _ in 0..<count {
        guard offset + 2 <= bytes.count else { return types }
        offset += 2 + (Int(bytes[offset]) << 8 | Int(bytes[offset + 1]))
        if offset <= bytes.count { types.insert(type) }
      }
    }
    return types
  }
}
