internal import CFFmpeg
internal import ReelCore

extension VideoCodec {
  /// The allowed decoders by libavcodec's names, in order of preference.
  var decoderNames: [String] {
    switch self {
    case .av1: ["libdav1d", "libaom-av1"]
    // libavcodec has two names for this codec.
    case .h263: ["h263", "h263p"]
    case .flv1: ["flv"]
    default: [rawValue]
    }
  }

  /// The `codec_whitelist` of every context that Reel opens.
  static let allowList = allCases.flatMap(\.decoderNames).joined(separator: ",")

  init?(_ id: AVCodecID) {
    let name = String(cString: avcodec_get_name(id))
    self.init(rawValue: name == "h263p" ? Self.h263.rawValue : name)
  }

  /// True for codecs with MPEG start codes (ISO/IEC 11172-2, 13818-2, 14496-2).
  var isMPEGVideo: Bool { self == .mpeg1 || self == .mpeg2 || self == .mpeg4 }
}

extension AudioCodec {
  /// The allowed decoders by libavcodec's names, in order of preference. `pcm` has one decoder for each sample format;
  /// its name is the codec name of the stream.
  var decoderNames: [String] {
    switch self {
    case .mp3: ["mp3float", "mp3"]
    case .mp2: ["mp2float", "mp2"]
    case .pcm: Self.sampleFormats.map { "pcm_\($0)" }
    default: [rawValue]
    }
  }

  /// The `codec_whitelist` of every context that decodes audio.
  static let allowList = allCases.flatMap(\.decoderNames).joined(separator: ",")

  init?(_ id: AVCodecID) {
    let name = String(cString: avcodec_get_name(id))
    self.init(rawValue: Self.pcm.decoderNames.contains(name) ? Self.pcm.rawValue : name)
  }

  // MARK: - Private

  /// libavcodec's names for the sample formats in MP4, QuickTime, Matroska, AVI and MPEG-PS.
  private static let sampleFormats = [
    "s16le", "s16be", "s24le", "s24be", "s32le", "s32be", "f32le", "f32be", "f64le", "f64be", "u8", "s8",
    "mulaw", "alaw", "dvd",
  ]
}

/// The stream types that MPEG-TS has for samples encrypted by SAMPLE-AES.
enum SampleAESStreamType {
  /// Maps the stream types of SAMPLE-AES to those of the same codecs in the clear (libavformat/mpegts.c,
  /// HLS_SAMPLE_ENC_types).
  static let clearTypes: [UInt8: UInt8] = [0xdb: 0x1b, 0xcf: 0x0f, 0xc1: 0x81, 0xc2: 0x87]
}
