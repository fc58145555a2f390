import Foundation
import ReelCore
import ReelFiles
import ReelGateway
import ReelManifest

/// Writes a presentation as HLS playlists, to a folder or to standard output.
struct HLSOutput {
  let hls: VirtualHLS

  /// Writes `master.m3u8` and a playlist for each track to `folder`, which is created if needed. Without a
  /// folder, prints them, each with its name in a comment.
  ///
  /// Throws `ReelError.cannotCreateOutput` or `cannotWriteOutput`.
  func write(to folder: String?) throws {
    guard let folder else {
      for (name, text) in playlists { try Console.write(Array(Self.named(text, name).utf8)) }
      return
    }
    let place = OutputPlace(
      directory: URL(fileURLWithPath: folder, isDirectory: true).path, existing: .replaced)
    // The multivariant playlist is written last, when the playlists that it refers to exist.
    for (name, text) in playlists.reversed() {
      try place.write(Array(text.utf8), to: name)
      try Console.print(place.path(name))
    }
  }

  // MARK: - Private

  private var playlists: [(name: String, text: String)] {
    [("master.m3u8", hls.multivariantPlaylist())]
      + hls.tracks.map { ("\($0.name).m3u8", hls.mediaPlaylist(of: $0)) }
  }

  /// The comment follows #EXTM3U, which must come first.
  private static func named(_ text: String, _ name: String) -> String {
    guard let end = text.firstIndex(of: "\n") else { return text }
    return "\(text[...end])# \(name)\n\(text[text.index(after: end)...])"
  }
}
