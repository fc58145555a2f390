internal import CFFmpeg

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

  /// What Reel can open with these libraries, and what they lack: a line for each, such as `video codecs  h264, hevc`.
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
