/// A container format that Reel demuxes. Reel detects the format from the content, not from the file name.
public enum ContainerFormat: String, Sendable, Hashable, CaseIterable {
  /// MP4, fragmented MP4 (CMAF), QuickTime and 3GP (ISO/IEC 14496-12).
  case mp4
  /// MPEG transport stream (ISO/IEC 13818-1).
  case mpegTS = "mpegts"
  /// MPEG program stream (ISO/IEC 13818-1).
  case mpegPS = "mpegps"
  /// Matroska and WebM.
  case matroska
  /// Flash Video.
  case flv
  /// AVI (RIFF).
  case avi
  /// IVF, the simple container of the VP8, VP9 and AV1 tools.
  case ivf
  /// A raw H.264 byte stream (ITU-T H.264 Annex B).
  case h264
  /// A raw HEVC byte stream (ITU-T H.265 Annex B).
  case hevc

  /// The name of libavformat's demuxer, as for `av_find_input_format`.
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

  /// True for MPEG-TS and MPEG-PS, whose 33-bit clock wraps around and may jump (ISO/IEC 13818-1).
  public var isMPEGSystem: Bool { self == .mpegTS || self == .mpegPS }

  /// The `format_whitelist` of every demuxer that Reel opens, by the long names that libavformat compares.
  static let allowList = "mov,mp4,m4a,3gp,3g2,mj2,mpegts,mpeg,matroska,webm,flv,avi,ivf,h264,hevc"
}
