internal import ReelCore

/// The header of one audio frame as elementary streams carry it: how long the frame is, in bytes and in time.
struct AudioFrameHeader: Hashable {
  /// The role of a frame in its packet.
  enum Role: Hashable {
    /// Decodable on its own.
    case independent
    /// More channels for the frame before it (E-AC-3).
    case dependent
    /// Of another programme in the same stream (E-AC-3), which is not decoded.
    case other
  }

  /// Of the whole frame, with its header.
  var byteCount: Int
  /// Of each channel.
  var sampleCount: Int
  var sampleRate: Int
  var role = Role.independent
  /// Bytes of a header that the decoder does not want.
  var prefixByteCount = 0
  /// The parameters that all frames of a stream share.
  var family: Int

  /// Bytes that a header can be read from, whatever the codec.
  static let byteCount = 7

  /// True for codecs whose frames can be recognized in a byte stream.
  static func isKnown(for codec: AudioCodec) -> Bool {
    switch codec {
    case .aac, .mp3, .mp2, .ac3, .eac3, .opus: true
    case .vorbis, .flac, .alac, .pcm: false
    }
  }

  /// Reads the header at the beginning of `bytes`; nil if there is none.
  init?(codec: AudioCodec, bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= Self.byteCount else { return nil }
    switch codec {
    case .aac: self.init(adts: bytes)
    case .mp3, .mp2: self.init(mpeg: bytes)
    case .ac3, .eac3: self.init(ac3: bytes)
    case .opus: self.init(opus: bytes)
    case .vorbis, .flac, .alac, .pcm: return nil
    }
  }

  /// True if a frame with this header may follow one with `other` in the same stream.
  func mayFollow(_ other: AudioFrameHeader) -> Bool {
    sampleRate == other.sampleRate && family == other.family
  }

  // MARK: - Private

  /// ISO/IEC 13818-7 §6.2.1.
  private init?(adts bytes: UnsafeRawBufferPointer) {
    // The layer is always 0: MPEG audio has the same sync word.
    guard bytes[0] == 0xff, bytes[1] & 0xf6 == 0xf0 else { return nil }
    let rates = [
      96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350,
    ]
    let rateIndex = Int(bytes[2] >> 2 & 0xf)
    let headerByteCount = bytes[1] & 1 == 0 ? 9 : 7
    byteCount = Int(bytes[3] & 3) << 11 | Int(bytes[4]) << 3 | Int(bytes[5] >> 5)
    guard rates.indices.contains(rateIndex), byteCount > headerByteCount else { return nil }
    sampleRate = rates[rateIndex]
    sampleCount = 1024 * (Int(bytes[6] & 3) + 1)
    family = Int(bytes[1] & 8)
  }

  /// ISO/IEC 11172-3 §2.4.2.3, ISO/IEC 13818-3, and MPEG-2.5 for layer III. Free format can't be distinguished
  /// from noise.
  private init?(mpeg bytes: UnsafeRawBufferPointer) {
    guard bytes[0] == 0xff, bytes[1] & 0xe0 == 0xe0 else { return nil }
    let (version, layer) = (Int(bytes[1] >> 3 & 3), 4 - Int(bytes[1] >> 1 & 3))
    let (bitrateIndex, rateIndex) = (Int(bytes[2] >> 4), Int(bytes[2] >> 2 & 3))
    guard version != 1, layer < 4, (1...14).contains(bitrateIndex), rateIndex < 3 else { return nil }
    let isFirstVersion = version == 3
    let bitrates: [Int]
    switch (layer, isFirstVersion) {
    case (1, true): bitrates = (1...14).map { $0 * 32 }
    case (2, true): bitrates = [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384]
    case (3, true): bitrates = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
    case (1, false): bitrates = [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256]
    default: bitrates = [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
    }
    sampleRate = [44100, 48000, 32000][rateIndex] >> (isFirstVersion ? 0 : version == 2 ? 1 : 2)
    sampleCount = layer == 1 ? 384 : layer == 3 && !isFirstVersion ? 576 : 1152
    let slotByteCount = layer == 1 ? 4 : 1
    let slotCount = sampleCount / 8 / slotByteCount * bitrates[bitrateIndex - 1] * 1000 / sampleRate
    byteCount = (slotCount + Int(bytes[2] >> 1 & 1)) * slotByteCount
    family = version << 2 | layer
  }

  /// ETSI TS 102 366 §4.3 and, for E-AC-3, §E.1.2.
  private init?(ac3 bytes: UnsafeRawBufferPointer) {
    guard bytes[0] == 0x0b, bytes[1] == 0x77 else { return nil }
    let rates = [48000, 44100, 32000]
    let version = Int(bytes[5] >> 3)
    let rateCode = Int(bytes[4] >> 6)
    family = 0
    if version <= 10 {
      let sizeCode = Int(bytes[4] & 0x3f)
      let kilobits = [
        32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640,
      ]
      guard rateCode < 3, sizeCode / 2 < kilobits.count else { return nil }
      // In 16-bit words. At 44.1 kHz sizes alternate, and the code says which one applies.
      let wordCount = kilobits[sizeCode / 2] * 96000 / rates[rateCode] + (rateCode == 1 ? sizeCode & 1 : 0)
      byteCount = wordCount * 2
      // Versions 9 and 10 have half and a quarter of the rate.
      sampleRate = rates[rateCode] >> max(0, version - 8)
      sampleCount = 1536
      return
    }
    let type = bytes[2] >> 6
    guard version <= 16, type != 3 else { return nil }
    byteCount = (Int(bytes[2] & 7) << 8 | Int(bytes[3])) * 2 + 2
    let secondCode = Int(bytes[4] >> 4 & 3)
    if rateCode == 3 {
      guard secondCode < 3 else { return nil }
      sampleRate = rates[secondCode] / 2
      sampleCount = 1536
    } else {
      sampleRate = rates[rateCode]
      sampleCount = 256 * [1, 2, 3, 6][secondCode]
    }
    guard byteCount > Self.byteCount else { return nil }
    role = type == 1 ? .dependent : bytes[2] >> 3 & 7 == 0 ? .independent : .other
  }

  /// The control header of ETSI TS 101 154's and FFmpeg's Opus in MPEG-TS, and the first byte of the Opus packet behind
  /// it (RFC 6716 §3.1).
  private init?(opus bytes: UnsafeRawBufferPointer) {
    guard bytes[0] == 0x7f, bytes[1] & 0xe0 == 0xe0 else { return nil }
    var offset = 2
    var size = 0
    var byte: UInt8
    repeat {
      guard offset < bytes.count else { return nil }
      byte = bytes[offset]
      size += Int(byte)
      offset += 1
    } while byte == 255
    // The trims of start and end, then an extension with its own length.
    if bytes[1] & 0x10 != 0 { offset += 2 }
    if bytes[1] & 0x08 != 0 { offset += 2 }
    if bytes[1] & 0x04 != 0 {
      guard offset < bytes.count else { return nil }
      offset += 1 + Int(bytes[offset])
    }
    guard size > 0, offset + 1 < bytes.count else { return nil }
    let configuration = Int(bytes[offset] >> 3)
    let frameSampleCount: Int
    switch configuration {
    case 0..<12: frameSampleCount = [480, 960, 1920, 2880][configuration % 4]
    case 12..<16: frameSampleCount = [480, 960][configuration % 2]
    default: frameSampleCount = [120, 240, 480, 960][configuration % 4]
    }
    let frameCount = [1, 2, 2, Int(bytes[offset + 1] & 0x3f)][Int(bytes[offset] & 3)]
    byteCount = offset + size
    prefixByteCount = offset
    sampleCount = frameSampleCount * frameCount
    sampleRate = 48000
    family = 0
  }
}
