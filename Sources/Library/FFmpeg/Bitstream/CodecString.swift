internal import CFFmpeg
internal import ReelCore

/// The `codecs` parameter of a stream, as manifests state it (RFC 6381 §3): `avc1.64001f`, `mp4a.40.2`.
extension StreamInfo {
  /// Returns the string; nil for a codec without one, or if the bytes that it is made of are not known.
  ///
  /// - Parameters:
  ///   - packet: The first packet of the stream, which has the parameter sets if the container has none.
  ///   - audioProfile: libavcodec's name for the profile of AAC, which only a decoder knows for HE-AAC with implicit
  ///     signalling; nil for AAC-LC.
  package func codecString(openedBy packet: Packet?, audioProfile: String? = nil) -> String? {
    if let videoCodec { return string(of: videoCodec, packet) }
    return switch audioCodec {
    case .aac: "mp4a.40.\(Self.objectTypes[audioProfile ?? ""] ?? 2)"
    case .mp3: "mp4a.40.34"
    case .mp2: "mp4a.40.33"
    case .ac3: "ac-3"
    case .eac3: "ec-3"
    case .opus: "Opus"
    case .vorbis: "vorbis"
    case .flac: "fLaC"
    case .alac: "alac"
    case .pcm, nil: nil
    }
  }

  /// MPEG-4 audio object types by libavcodec's names (ISO/IEC 14496-3 §1.5.1.1).
  package static let objectTypes = ["LC": 2, "HE-AAC": 5, "HE-AACv2": 29]

  // MARK: - Private

  private func string(of codec: VideoCodec, _ packet: Packet?) -> String? {
    switch codec {
    case .h264:
      guard let bytes = h264Profile(packet) else { return nil }
      return "\(sampleEntry(["avc1", "avc3"])).\(bytes.map { Self.hex($0, digits: 2) }.joined())"
    case .hevc:
      guard let tier = hevcProfile(packet) else { return nil }
      return "\(sampleEntry(["hvc1", "hev1"])).\(tier)"
    case .av1: return av1Profile
    case .vp9: return vp9Profile
    case .vp8: return "vp8"
    case .mpeg4: return "mp4v.20"
    case .mpeg2: return "mp4v.61"
    case .mpeg1: return "mp4v.6A"
    case .mjpeg: return "mp4v.6C"
    case .h263, .flv1, .prores: return nil
    }
  }

  /// The sample entry of the container if it is one of these; otherwise the first of them.
  private func sampleEntry(_ names: [String]) -> String {
    codecTag.flatMap { names.contains($0) ? $0 : nil } ?? names[0]
  }

  /// `profile_idc`, the constraint flags and `level_idc` (ISO/IEC 14496-15 §5.4.1).
  private func h264Profile(_ packet: Packet?) -> [UInt8]? {
    let configuration = configuration
    if case .lengthPrefixed = nalFraming, configuration.count > 3 { return Array(configuration[1...3]) }
    guard let set = sequenceParameterSet(.h264, packet), set.count > 3 else { return nil }
    return Array(set[1...3])
  }

  /// The profile, its compatibility flags, tier, level and constraints (ISO/IEC 14496-15 Annex E.3).
  private func hevcProfile(_ packet: Packet?) -> String? {
    var fields = configuration
    if case .lengthPrefixed = nalFraming, fields.count > 12 {
      // Behind the version of the `hvcC` record, §8.3.3.1.
      fields = Array(fields[1...12])
    } else {
      guard let set = sequenceParameterSet(.hevc, packet) else { return nil }
      let read = set.withUnsafeBytes { bytes -> [UInt8]? in
        // The header and the first byte, ISO/IEC 23008-2 §7.3.2.2.1.
        var bits = BitReader(bytes)
        bits.skip(24)
        let fields = (0..<12).map { _ in UInt8(bits.read(8)) }
        return bits.hasFailed ? nil : fields
      }
      guard let read else { return nil }
      fields = read
    }
    let space = ["", "A", "B", "C"][Int(fields[0] >> 6)]
    let flags = fields[1...4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    let reversed = (0..<32).reduce(UInt32(0)) { $0 << 1 | (flags >> UInt32($1) & 1) }
    var parts = [
      "\(space)\(fields[0] & 0x1f)", Self.hex(reversed), "\(fields[0] & 0x20 == 0 ? "L" : "H")\(fields[11])",
    ]
    var constraints = fields[5...10]
    while constraints.last == 0 { constraints.removeLast() }
    parts += constraints.map { Self.hex($0) }
    return parts.joined(separator: ".").uppercased()
  }

  /// The first sequence parameter set of the container, or else of the packet: the unit with its header.
  private func sequenceParameterSet(_ codec: VideoCodec, _ packet: Packet?) -> [UInt8]? {
    var found: [UInt8]?
    func look(_ unit: UnsafeRawBufferPointer) {
      guard found == nil, let header = NALUnitHeader(codec: codec, bytes: unit),
        header.type == (codec == .h264 ? 7 : 33)
      else { return }
      found = Array(unit)
    }
    configuration.withUnsafeBytes { $0.forEachConfigurationUnit(framing: nalFraming, look) }
    packet?.withBytes { bytes in
      bytes.forEachNALUnit(framing: nalFraming) { unit in
        look(unit)
        return found == nil
      }
    }
    return found
  }

  /// `av01.P.LLT.DD` of an `av1C` record (the AV1 binding to ISO base media §2.3 and §5).
  private var av1Profile: String? {
    let record = configuration
    guard record.count >= 4, record[0] == 0x81 else { return nil }
    let (profile, level) = (record[1] >> 5, record[1] & 0x1f)
    let (tier, isHigh, isTwelve) = (record[2] >> 7 == 1, record[2] >> 6 & 1 == 1, record[2] >> 5 & 1 == 1)
    let depth = isTwelve ? "12" : isHigh ? "10" : "08"
    return "av01.\(profile).\(level < 10 ? "0" : "")\(level)\(tier ? "H" : "M").\(depth)"
  }

  /// `vp09.PP.LL.DD` if the container states them (the VP9 binding to ISO base media), or else the codec of WebM.
  private var vp9Profile: String {
    let (profile, level) = (parameters.pointer.pointee.profile, parameters.pointer.pointee.level)
    // The other profiles have 10 or 12 bits.
    guard (0...1).contains(profile), (10...62).contains(level) else { return "vp9" }
    return "vp09.0\(profile).\(level).08"
  }

  private static func hex(_ value: some BinaryInteger, digits: Int = 1) -> String {
    let text = String(value, radix: 16)
    return String(repeating: "0", count: max(0, digits - text.count)) + text
  }
}
