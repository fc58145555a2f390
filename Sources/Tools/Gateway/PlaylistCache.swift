import NIOCore
import ReelManifest

/// The media playlists of a presentation, each generated once, on demand.
///
/// They do not change, and a long one takes a second or two, which should not be spent for each client. At most
/// 64 MiB are kept; the rest is generated again.
actor PlaylistCache {
  private let hls: VirtualHLS
  private var texts: [Int: Task<ByteBuffer, Never>] = [:]
  private var byteCount = 0

  private static let byteLimit = 64 << 20

  init(_ hls: VirtualHLS) { self.hls = hls }

  /// The playlist of a track, with the names of its resources as URIs.
  func text(of track: VirtualHLS.Track) async -> ByteBuffer {
    if let known = texts[track.index] { return await known.value }
    let hls = hls
    let task = Task { ByteBuffer(string: hls.mediaPlaylist(of: track) { $0.name }) }
    texts[track.index] = task
    let text = await task.value
    byteCount += text.readableBytes
    if byteCount > Self.byteLimit {
      byteCount -= text.readableBytes
      texts[track.index] = nil
    }
    return text
  }
}
