internal import CFFmpeg
internal import ReelCore

/// A container format that Reel demuxes. Reel detects the format from the content, not from the file name.
package enum ContainerFormat: String, Sendable, Hashable, CaseIterable {
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
  /// AAC with ADTS headers (ISO/IEC 14496-3), a format of packed audio.
  case aac
  /// MPEG audio without a container (ISO/IEC 11172-3), a format of packed audio.
  case mp3
  /// AC-3 without a container (ETSI TS 102 366), a format of packed audio.
  case ac3
  /// E-AC-3 without a container (ETSI TS 102 366, Annex E), a format of packed audio.
  case eac3

  /// The name of libavformat's demuxer, as for `av_find_input_format`.
  package var demuxerName: String {
    switch self {
    case .mp4: "mov"
    case .mpegPS: "mpeg"
    default: rawValue
    }
  }

  /// True if all streams are known before the first packet. In other formats, streams may appear later.
  package var announcesStreamsFirst: Bool {
    switch self {
    case .mpegPS, .flv: false
    default: true
    }
  }

  /// True for bare audio frames, whose segments in HLS begin with the time of the first one (RFC 8216 §3.4).
  package var isPackedAudio: Bool {
    switch self {
    case .aac, .mp3, .ac3, .eac3: true
    default: false
    }
  }

  /// True for MPEG-TS and packed audio, whose access units and audio frames Reel splits instead of libavformat.
  var isSplitByReel: Bool { self == .mpegTS || isPackedAudio }

  /// True for MPEG-TS, MPEG-PS and packed audio, whose 33-bit clock wraps around and may jump (ISO/IEC 13818-1).
  package var hasSystemClock: Bool { self == .mpegTS || self == .mpegPS || isPackedAudio }

  /// The `format_whitelist` of every demuxer that Reel opens, by the long names that libavformat compares.
  static let allowList =
    "mov,mp4,m4a,3gp,3g2,mj2,mpegts,mpeg,matroska,webm,flv,avi,ivf,h264,hevc,aac,mp3,ac3,eac3"
}

/// libavformat's guess at the format of bytes that their first bytes alone do not identify: raw elementary
/// streams, and the names of unsupported formats.
package enum ContainerProbe {
  package enum Guess: Sendable, Hashable {
    case supported(ContainerFormat)
    /// libavformat's long name of the container.
    case unsupported(String)
    case unknown
  }

  /// `bytes` are the first of a source; a few kilobytes are enough.
  package static func guess(_ bytes: [UInt8]) -> Guess {
    // libavformat reads beyond the end of the probed bytes (AVPROBE_PADDING_SIZE).
    var padded = bytes + [UInt8](repeating: 0, count: Int(AVPROBE_PADDING_SIZE))
    return padded.withUnsafeMutableBufferPointer { buffer in
      var data = AVProbeData(
        filename: nil, buf: buffer.baseAddress, buf_size: Int32(bytes.count), mime_type: nil)
      var score: Int32 = 0
      guard let format = av_probe_input_format3(&data, 1, &score), score > minimumScore else {
        return .unknown
      }
      let names = Set(String(cString: format.pointee.name).split(separator: ",").map(String.init))
      if let supported = ContainerFormat.allCases.first(where: { names.contains($0.demuxerName) }) {
        return .supported(supported)
      }
      guard let longName = format.pointee.long_name else { return .unknown }
      return .unsupported(String(cString: longName))
    }
  }

  /// A guess with a lower score is worthless (`AVPROBE_SCORE_RETRY` in libavformat/avformat.h).
  private static let minimumScore: Int32 = 25
}

/// The versions of FFmpeg's libraries that the process has loaded.
package enum FFmpegVersion {
  /// FFmpeg's own version, such as `5.1.6`.
  package static var release: String { String(cString: av_version_info()) }

  /// Each library with its version, such as `libavcodec 59.37.100`.
  package static var libraries: [String] {
    [
      ("libavformat", avformat_version()), ("libavcodec", avcodec_version()), ("libavutil", avutil_version()),
      ("libswscale", swscale_version()),
    ].map { name, version in "\(name) \(version >> 16).\(version >> 8 & 255).\(version & 255)" }
  }

  /// The features that Reel can use with these libraries, and those that they lack: a line for each kind,
  /// such as `video codecs h264, hevc`.
  package static var capabilities: [(name: String, present: [String], missing: [String])] {
    let video = VideoCodec.allCases.map { ($0.rawValue, $0.decoderNames) }
    let audio = AudioCodec.allCases.map { ($0.rawValue, $0.decoderNames) }
    let formats = Set(ContainerFormat.allCases.map(\.demuxerName)).sorted()
    return [
      split("video codecs", video) { avcodec_find_decoder_by_name($0) != nil },
      split("audio codecs", audio) { avcodec_find_decoder_by_name($0) != nil },
      split("containers", formats.map { ($0, [$0]) }) { av_find_input_format($0) != nil },
    ]
  }

  private static func split(
    _ name: String, _ entries: [(name: String, anyOf: [String])], isThere: (String) -> Bool
  ) -> (name: String, present: [String], missing: [String]) {
    let present = entries.filter { $0.anyOf.contains(where: isThere) }.map(\.name)
    return (name, present, entries.map(\.name).filter { !present.contains($0) })
  }
}
