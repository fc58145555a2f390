import Foundation
import ReelCore
import ReelLab
import ReelManifest
import ReelPool
import ReelSources

/// The files that `reel serve` serves, and the items that they are a feed of.
struct ServedFeed: Sendable {
  private struct Mount: Sendable {
    var folder: URL
    /// The only files that are served; nil for all.
    var names: Set<String>?
  }

  private(set) var items: [RecordedRun.Item] = []
  /// The entries of the feed that can't be served, in words.
  private(set) var omissions: [String] = []
  /// The folder that is served whole; nil for a feed.
  private let folder: URL?
  /// The folders of the items of a feed, by the first component of the path.
  private var mounts: [String: Mount] = [:]

  /// The media in a folder: the playlist in each folder that has one, and media files elsewhere, in the order of their names.
  init(folder: URL) {
    self.folder = folder
    var left = Self.folderLimit
    items = Self.media(in: folder.path(percentEncoded: false), depth: 0, left: &left)
      .prefix(Self.itemLimit).map { RecordedRun.Item(name: $0, path: "/\($0)") }
  }

  /// The local items of a feed file; nil if the bytes are not a feed.
  ///
  /// Throws `ReelError` of kind `usage` if none of its items can be served.
  init?(feedAt path: String) throws(ReelError) {
    folder = nil
    // A pipe can be read only once, and a manifest may be in it.
    guard let bytes = try? LocalText.bytes(path: path, limit: FeedLimits().byteCount, isRegular: true),
      let source = try? MediaSource(argument: path), let file = try? FeedFile(bytes: bytes, at: source),
      let feed = try? file.feed(named: nil)
    else { return nil }
    for (index, item) in feed.items.enumerated() { add(item.source, number: index + 1) }
    guard !items.isEmpty else {
      throw ReelError(
        .usage, "no item of the feed can be served: \(omissions.first ?? "")", at: path,
        advice: "reel serve serves local files")
    }
  }

  /// Returns the folder and the path in it of the file that a path means; nil for none.
  func file(at path: String) -> (folder: URL, path: String)? {
    if let folder { return (folder, path) }
    let parts = path.split(separator: "/").map(String.init)
    guard parts.count > 1, let mount = mounts[parts[0]], !parts.contains(where: { $0.hasPrefix(".") }) else {
      return nil
    }
    let rest = parts.dropFirst().joined(separator: "/")
    guard mount.names?.contains(rest) ?? true else { return nil }
    return (mount.folder, rest)
  }

  // MARK: - Private

  private static let itemLimit = 1_000
  /// The number of files and folders that are looked at.
  private static let folderLimit = 10_000
  private static let depthLimit = 4
  private static let mainPlaylists = ["master.m3u8", "main.m3u8", "index.m3u8", "playlist.m3u8"]
  private static let mediaExtensions: Set<String> = ["mp4", "m4v", "mov", "webm"]

  /// Returns the paths of the items below a folder, relative to it.
  private static func media(in folder: String, depth: Int, left: inout Int) -> [String] {
    let names = ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [])
      .filter { !$0.hasPrefix(".") }.sorted { $0.compare($1, options: .numeric) == .orderedAscending }
    let ends = { (name: String) in (name as NSString).pathExtension.lowercased() }
    if let main = mainPlaylists.first(where: { names.contains($0) }) { return [main] }
    let playlists = names.filter { ends($0) == "m3u8" }
    let multivariant = playlists.filter { isMultivariant("\(folder)/\($0)") }
    // The files beside a manifest are its segments.
    if !playlists.isEmpty { return multivariant.isEmpty ? playlists : multivariant }
    if names.contains(where: { ends($0) == "mpd" }) { return [] }
    var found: [String] = []
    for name in names where left > 0 {
      left -= 1
      if mediaExtensions.contains(ends(name)) {
        found.append(name)
      } else if depth < depthLimit {
        found += media(in: "\(folder)/\(name)", depth: depth + 1, left: &left).map { "\(name)/\($0)" }
      }
    }
    return found
  }

  private static func isMultivariant(_ path: String) -> Bool {
    guard let text = try? LocalText.bytes(path: path, limit: 1 << 20, isRegular: true) else { return false }
    return String(decoding: text, as: UTF8.self).contains("#EXT-X-STREAM-INF")
  }

  private mutating func add(_ source: MediaSource, number: Int) {
    guard case .url(let url) = source, url.isFileURL else {
      omissions.append("item \(number), \(source.name), is not a local file")
      return
    }
    let path = url.path(percentEncoded: false)
    let name = url.lastPathComponent
    guard FileManager.default.isReadableFile(atPath: path), !name.hasPrefix(".") else {
      omissions.append("item \(number), \(path), can't be read")
      return
    }
    let parent = url.deletingLastPathComponent()
    let key = mounts.first { $0.value.folder == parent }?.key ?? "\(number)"
    var mount = mounts[key] ?? Mount(folder: parent, names: [])
    // A manifest needs the files beside it.
    if ["m3u8", "mpd"].contains(url.pathExtension.lowercased()) {
      mount.names = nil
    } else {
      mount.names?.insert(name)
    }
    mounts[key] = mount
    items.append(
      RecordedRun.Item(
        name: path.split(separator: "/").suffix(2).joined(separator: "/"), path: "/\(key)/\(name)"))
  }
}
