internal import CFFmpeg

/// A video codec that Reel decodes.
public enum VideoCodec: String, Sendable, Hashable, CaseIterable {
  /// H.264 (ITU-T H.264, ISO/IEC 14496-10).
  case h264
  /// HEVC (ITU-T H.265, ISO/IEC 23008-2).
  case hevc
  /// AV1.
  case av1
  /// VP9.
  case vp9
  /// VP8 (RFC 6386).
  case vp8
  /// MPEG-1 video (ISO/IEC 11172-2).
  case mpeg1 = "mpeg1video"
  /// MPEG-2 video (ITU-T H.262, ISO/IEC 13818-2).
  case mpeg2 = "mpeg2video"
  /// MPEG-4 Part 2, including DivX and Xvid.
  case mpeg4
  /// ITU-T H.263, including the extensions of its second version (H.263+).
  case h263
  /// Sorenson Spark, the variant of H.263 in FLV.
  case flv1
  /// Motion JPEG.
  case mjpeg
  /// Apple ProRes.
  case prores

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
    switch id {
    case AV_CODEC_ID_H264: self = .h264
    case AV_CODEC_ID_HEVC: self = .hevc
    case AV_CODEC_ID_AV1: self = .av1
    case AV_CODEC_ID_VP9: self = .vp9
    case AV_CODEC_ID_VP8: self = .vp8
    case AV_CODEC_ID_MPEG1VIDEO: self = .mpeg1
    case AV_CODEC_ID_MPEG2VIDEO: self = .mpeg2
    case AV_CODEC_ID_MPEG4: self = .mpeg4
    case AV_CODEC_ID_H263, AV_CODEC_ID_H263P: self = .h263
    case AV_CODEC_ID_FLV1: self = .flv1
    case AV_CODEC_ID_MJPEG: self = .mjpeg
    case AV_CODEC_ID_PRORES: self = .prores
    default: return nil
    }
  }

  /// True for codecs with MPEG start codes (ISO/IEC 11172-2, 13818-2, 14496-2).
  var isMPEGVideo: Bool { self == .mpeg1 || self == .mpeg2 || self == .mpeg4 }
}

extension VideoCodec {
  /// The codec of a name in a manifest (RFC 6381): a sample entry of ISO/IEC 14496-15, of the AV1 and VP bindings or of
  /// MPEG-4, or a codec of WebM (`vp8`). Nil if Reel does not decode it. Dolby Vision has a base layer that is decoded.
  package init?(manifestName name: String) {
    let parts = name.lowercased().split(separator: ".")
    switch parts.first {
    case "avc1", "avc3", "dva1", "dvav": self = .h264
    case "hvc1", "hev1", "dvh1", "dvhe": self = .hevc
    case "av01", "dav1": self = .av1
    case "vp09", "vp9": self = .vp9
    case "vp08", "vp8": self = .vp8
    case "s263": self = .h263
    case "mp4v":
      // Object types of ISO/IEC 14496-1 §7.2.6.6.
      switch parts.dropFirst().first ?? "20" {
      case "20": self = .mpeg4
      case "60", "61", "62", "63", "64", "65": self = .mpeg2
      case "6a": self = .mpeg1
      case "6c": self = .mjpeg
      default: return nil
      }
    default: return nil
    }
  }
}
