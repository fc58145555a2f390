/// The containers that Reel demuxes. Each is named by its bytes; libavformat's own guess from a file name is never
/// asked for.
public enum ContainerFormat: String, Sendable, Hashable, CaseIterable {
  case mp4
  case mpegTS = "mpegts"
  case mpegPS = "mpegps"
  case matroska
  case flv
  case avi
  case ivf
  case h264
  case hevc

  /// The name of libavformat's demuxer (`av_find_input_format`).
  public var demuxerName: String {
    switch self {
    case .mp4: "mov"
    case .mpegPS: "mpeg"
    default: rawValue
    }
  }

  /// True if all streams are known before the first packet. In other formats, streams may appear later.
  package var announcesStreamsFirst: Bool {
    switch self {
    case .mp4, .mpegTS, .matroska, .avi, .ivf, .h264, .hevc: true
    default: false
    }
  }

  /// True for MPEG-TS and MPEG-PS, whose clock has 33 bits and may jump (ISO/IEC 13818-1).
  public var isMPEGSystem: Bool { self == .mpegTS || self == .mpegPS }

  /// The `format_whitelist` of every demuxer that Reel opens: the long names that libavformat compares with.
  static let allowList = "mov,mp4,m4a,3gp,3g2,mj2,mpegts,mpeg,matroska,webm,flv,avi,ivf,h264,hevc"
}
