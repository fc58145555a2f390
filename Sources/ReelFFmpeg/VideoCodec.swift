internal import CFFmpeg

/// The video codecs that Reel decodes.
public enum VideoCodec: String, Sendable, Hashable, CaseIterable {
  case h264
  case hevc
  case av1
  case vp9

  /// The decoders that may be opened, by libavcodec's names, best first.
  var decoderNames: [String] {
    switch self {
    case .h264: ["h264"]
    case .hevc: ["hevc"]
    case .av1: ["libdav1d", "libaom-av1"]
    case .vp9: ["vp9"]
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
    default: return nil
    }
  }
}
