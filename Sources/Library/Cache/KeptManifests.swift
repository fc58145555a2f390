internal import Foundation
internal import ReelCore
internal import ReelManifest

/// Decides which manifests may be stored: none of a live stream, and none with keys or URLs that have a query, which may be
/// credentials.
///
/// A multivariant playlist does not say whether its stream is live. It is stored when one of its media playlists turns out to
/// be complete.
final class KeptManifests: Sendable {
  struct Manifest: Sendable {
    let entry: MediaCache.Entry
    let bytes: [UInt8]
  }

  enum Decision {
    case store([Manifest])
    case remove([EntryKey])
  }

  /// The playlists of multivariant playlists that were read last, and these themselves.
  private let parents = Locked<[(playlists: Set<String>, parent: Manifest)]>([])
  private static let parentLimit = 64
  private static let parentByteLimit = 256 << 10

  /// Decides on a manifest, and on the multivariant playlists that name it.
  func decision(
    on manifest: Manifest, _ format: ManifestFormat, requested: URL, at url: URL, now: WallTime
  ) -> Decision {
    let (key, bytes) = (manifest.entry.key, manifest.bytes)
    guard !Self.hasSecrets(bytes, format),
      let presentation = try? ManifestReader().presentation(from: bytes, format: format, url: url, now: now)
    else { return .remove([key]) }
    if presentation.live != nil { return .remove([key] + take(naming: requested).map(\.entry.key)) }
    let playlists = presentation.periods.flatMap(\.trackGroups).flatMap(\.rungs).flatMap { rung -> [URL] in
      if case .playlist(let url) = rung.media { [url] + rung.alternateURLs } else { [] }
    }
    if playlists.isEmpty { return .store([manifest] + take(naming: requested)) }
    if bytes.count <= Self.parentByteLimit {
      parents.withLock { parents in
        parents.removeAll { $0.parent.entry.key == key }
        parents.append((Set(playlists.map(\.absoluteString)), manifest))
        if parents.count > Self.parentLimit { parents.removeFirst() }
      }
    }
    return .remove([key])
  }

  /// Returns the multivariant playlists that name a media playlist, which decides on them, and forgets them.
  func take(naming playlist: URL) -> [Manifest] {
    parents.withLock { parents in
      let taken = parents.filter { $0.playlists.contains(playlist.absoluteString) }.map(\.parent)
      parents.removeAll { $0.playlists.contains(playlist.absoluteString) }
      return taken
    }
  }

  private static func hasSecrets(_ bytes: [UInt8], _ format: ManifestFormat) -> Bool {
    let text = String(decoding: bytes, as: UTF8.self)
    switch format {
    case .hls:
      let lines = text.split(whereSeparator: \.isNewline).filter {
        !$0.hasPrefix("#") || $0.hasPrefix("#EXT")
      }
      return lines.contains { $0.contains("?") || $0.contains("\"data:") }
    case .dash:
      return text.replacing("<?", with: "").replacing("?>", with: "").contains("?")
    }
  }
}
