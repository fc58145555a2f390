package import ReelFFmpeg

extension Fixtures {
  /// The format that a media file's name stands for.
  package static func containerFormat(of path: String) -> ContainerFormat {
    switch path.split(separator: ".").last {
    case "ts": .mpegTS
    case "mkv", "webm": .matroska
    case "flv": .flv
    case "avi": .avi
    case "mpg", "vob": .mpegPS
    case "h264": .h264
    case "hevc": .hevc
    default: .mp4
    }
  }
}
