internal import Foundation
internal import ReelCore
internal import ReelManifest

/// Decides which manifests may be stored: none of a live stream, and none with keys or URLs that have a query, which may be
/// credentials.
///
/// A multivariant playlist does not say whether its stream is live. It is stored when one of its media playlists turns out to
/// be complete.
final class KeptManifests: Sendable {
  /// A multivariant playlist.
  struct Parent: Sendable {
    let entry: MediaCache.Entry
    let bytes: [UInt8]
  }

  enum Decision {
    /// Store it, and these multivariant playlists.
    case store([Parent])
    case leave
    /// It is of a live stream, as are these.
    case remove([Parent])
  }

  /// The playlists of multivariant playlists that were read last, and these themselves.
  private let parents = Locked<[(playlists: Set<String>, parent: Parent)]>([])
  private static let parentLimit = 64
  private static let parentByteLimit = 256 << 10

  func decision(
    on bytes: [UInt8], _ format: ManifestFormat, of entry: MediaCache.Entry, requested: URL, at url: URL,
    now: WallTime
  ) -> Decision {
    guard !Self.hasSecrets(bytes, format),
      let presentation = try? ManifestReader().presentation(from: bytes, format: format, url: url, now: now)
    else { return .leave }
    if presentation.live != nil { return .remove(take(naming: requested)) }
    let playlists = presentation.periods.flatMap(\.trackGroups).flatMap(\.rungs).flatMap { rung -> [URL] in
      if case .playlist(let url) = rung.media { [url] + rung.alternateURLs } else { [] }
    }
    guard playlists.isEmpty else {
      guard bytes.count <= Self.parentByteLimit else { return .leave }
      parents.withLock { parents in
        parents.removeAll { $0.parent.entry.key == entry.key }
        parents.append((Set(playlists.map(\.absoluteString)), Parent(entry: entry, bytes: bytes)))
        if parents.count > Self.parentLimit { parents.removeFirst() }
      }
      return .leave
    }
    return .store(take(naming: requested))
  }

  /// Returns the multivariant playlists that name a media playlist, which decides on them, and forgets them.
  func take(naming playlist: URL) -> [Parent] {
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
