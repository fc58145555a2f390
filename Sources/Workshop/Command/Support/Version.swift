import Foundation
import ReelFFmpeg

/// The version of the tool.
enum Version {
  static let text = "0.1.0"

  /// The text of `--version --verbose`: the versions of FFmpeg's libraries, and what Reel can open with them.
  static var details: String {
    var lines = ["reel \(text)", "ffmpeg \(FFmpegVersion.release)"]
    lines += FFmpegVersion.libraries.map { "  \($0)" }
    lines += [
      "manifests     HLS, DASH", "protocols     http (HTTP/1.1), https (HTTP/1.1, HTTP/2), file, data",
    ]
    for entry in FFmpegVersion.capabilities {
      lines.append(
        entry.name.padding(toLength: 14, withPad: " ", startingAt: 0) + entry.present.joined(separator: ", "))
      if !entry.missing.isEmpty { lines.append("  missing     " + entry.missing.joined(separator: ", ")) }
    }
    return lines.joined(separator: "\n")
  }
}
