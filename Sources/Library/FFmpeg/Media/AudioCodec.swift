internal import CFFmpeg

/// An audio codec that Reel decodes.
public enum AudioCodec: String, Sendable, Hashable, CaseIterable {
  /// AAC, including HE-AAC (ISO/IEC 14496-3).
  case aac
  /// MPEG-1 and MPEG-2 Audio Layer III.
  case mp3
  /// MPEG-1 and MPEG-2 Audio Layer II.
  case mp2
  /// AC-3 (ATSC A/52).
  case ac3
  /// E-AC-3 (ATSC A/52, Annex E).
  case eac3
  /// Opus (RFC 6716).
  case opus
  /// Vorbis.
  case vorbis
  /// FLAC (RFC 9639).
  case flac
  /// Apple Lossless.
  case alac
  /// Uncompressed or companded samples: integer, floating-point, mu-law, A-law and DVD PCM.
  case pcm

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
    switch id {
    case AV_CODEC_ID_AAC: self = .aac
    case AV_CODEC_ID_MP3: self = .mp3
    case AV_CODEC_ID_MP2: self = .mp2
    case AV_CODEC_ID_AC3: self = .ac3
    case AV_CODEC_ID_EAC3: self = .eac3
    case AV_CODEC_ID_OPUS: self = .opus
    case AV_CODEC_ID_VORBIS: self = .vorbis
    case AV_CODEC_ID_FLAC: self = .flac
    case AV_CODEC_ID_ALAC: self = .alac
    default:
      guard Self.pcm.decoderNames.contains(String(cString: avcodec_get_name(id))) else { return nil }
      self = .pcm
    }
  }

  // MARK: - Private

  /// libavcodec's names for the sample formats in MP4, QuickTime, Matroska, AVI and MPEG-PS.
  private static let sampleFormats = [
    "s16le", "s16be", "s24le", "s24be", "s32le", "s32be", "f32le", "f32be", "f64le", "f64be", "u8", "s8",
    "mulaw", "alaw", "dvd",
  ]
}

extension AudioCodec {
  /// The codec of a name in a manifest (RFC 6381): a sample entry, or a codec of WebM. Nil if Reel does not decode it.
  package init?(manifestName name: String) {
    let parts = name.lowercased().split(separator: ".")
    switch parts.first {
    case "mp4a":
      // Object types of ISO/IEC 14496-1 §7.2.6.6, and 34, MPEG-1 Layer III, of ISO/IEC 14496-3 §1.5.1.1.
      switch parts.dropFirst().first {
      case "69", "6b": self = .mp3
      case "a5": self = .ac3
      case "a6": self = .eac3
      case "40" where parts.last == "34": self = .mp3
      default: self = .aac
      }
    case "mp3": self = .mp3
    case "ac-3": self = .ac3
    case "ec-3": self = .eac3
    case "opus": self = .opus
    case "vorbis": self = .vorbis
    case "flac": self = .flac
    case "alac": self = .alac
    case "ipcm", "fpcm": self = .pcm
    default: return nil
    }
  }
}
