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
}
