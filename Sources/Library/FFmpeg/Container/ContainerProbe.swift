internal import CFFmpeg

/// libavformat's guess at what bytes are, for those that a look at their first ones does not settle: raw elementary
/// streams, and the name of what is not supported.
package enum ContainerProbe {
  package enum Guess: Sendable, Hashable {
    case supported(ContainerFormat)
    /// libavformat's long name of the container.
    case unsupported(String)
    case unknown
  }

  /// `bytes` are the first of a source; a few kilobytes are enough.
  package static func guess(_ bytes: [UInt8]) -> Guess {
    // libavformat reads beyond the end of what it probes (AVPROBE_PADDING_SIZE).
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

  /// Below this a guess is as good as none (`AVPROBE_SCORE_RETRY` in libavformat/avformat.h).
  private static let minimumScore: Int32 = 25
}
