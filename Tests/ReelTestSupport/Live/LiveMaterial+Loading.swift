package import Foundation
package import ReelCore
import ReelManifest

extension LiveMaterial {
  /// Reads an on-demand presentation: an HLS multivariant or media playlist, or an MPD, in a local file, with its
  /// segments in local files below the same folder. Of an MPD the first Period is taken.
  ///
  /// Throws `noSuchFile`, `badManifest`, and `unsupported` for encrypted and live presentations and for segments that
  /// only a `sidx` lists.
  package init(manifest url: URL) throws(ReelError) {
    let bytes = try Piece(file: url).read()
    let format: ManifestFormat = bytes.starts(with: Array("#EXTM3U".utf8)) ? .hls : .dash
    let presentation = try ManifestReader().presentation(from: bytes, format: format, url: url)
    self.format = presentation.format
    guard !presentation.isLive, let period = presentation.periods.first else {
      throw Self.unsupported("a live presentation where one on demand is expected", url)
    }
    var tracks: [Track] = []
    var seen: Set<URL> = []
    for (index, group) in period.trackGroups.enumerated() {
      let place = Group(index: index, kind: group.kind.rawValue, language: group.language)
      for rung in group.rungs {
        var rung = rung
        let id: String
        switch rung.media {
        case .segments: id = format == .hls ? url.lastPathComponent : rung.id
        case .playlist(let playlist):
          guard seen.insert(playlist).inserted else { continue }
          multivariant = (url.lastPathComponent, bytes)
          id = try Self.path(of: playlist, below: url.deletingLastPathComponent())
          let read = try ManifestReader().mediaPlaylist(
            from: try Piece(file: playlist).read(), url: playlist, variables: presentation.variables)
          guard !read.isLive else {
            throw Self.unsupported("a live playlist where one on demand is expected", playlist)
          }
          rung.media = .segments(read.segments)
        case .index: throw Self.unsupported("segments that only a sidx lists can't be looped", url)
        }
        guard case .segments(let list) = rung.media else { continue }
        tracks.append(
          try Self.track(place, id, rung, list, from: period.start, length: tracks.first?.end, at: url))
      }
    }
    guard let first = tracks.first else { throw Self.unsupported("no track that could be looped", url) }
    duration = first.end
    self.tracks = tracks
  }

  // MARK: - Private

  private static func unsupported(_ reason: String, _ url: URL) -> ReelError {
    ReelError(.unsupported, reason, at: url.path(percentEncoded: false))
  }

  /// The path of `url` below `folder`.
  private static func path(of url: URL, below folder: URL) throws(ReelError) -> String {
    let (path, root) = (url.standardizedFileURL.path(), folder.standardizedFileURL.path())
    let base = root.hasSuffix("/") ? root : root + "/"
    guard path.hasPrefix(base) else { throw unsupported("it lies outside of the material's folder", url) }
    return String(path.dropFirst(base.count)).removingPercentEncoding ?? path
  }

  /// - Parameter length: How long the pass lasts; nil where this track tells.
  private static func track(
    _ group: Group, _ id: String, _ rung: Rung, _ list: SegmentList, from start: MediaTime,
    length: MediaTime?, at url: URL
  ) throws(ReelError) -> Track {
    var track = Track(group: group, id: id, rung: rung, segments: [], initializations: [])
    guard let first = list.first else { throw unsupported("the track '\(id)' has no segments", url) }
    track.mediaStart = first.timestampOffset.map { start - $0 }
    for segment in list {
      let position = segment.start - start
      if let length, position >= length { break }
      guard segment.encryption == nil else { throw unsupported("encrypted segments can't be looped", url) }
      let initialization = segment.initialization.map { Piece(file: $0.url, range: $0.byteRange) }
      if let initialization, track.initializations.last != initialization {
        track.initializations.append(initialization)
      }
      track.segments.append(
        Segment(
          piece: Piece(file: segment.url, range: segment.byteRange), start: position,
          duration: segment.duration,
          initialization: initialization == nil ? nil : track.initializations.count - 1,
          discontinuity: segment.discontinuity - first.discontinuity))
    }
    let end = length ?? track.end
    let last = track.segments.count - 1
    guard last >= 0, end > track.segments[last].start else {
      throw unsupported("the track '\(id)' has no length", url)
    }
    track.segments[last].duration = end - track.segments[last].start
    return track
  }
}

extension LiveMaterial.Track {
  /// The end of the last segment, from the beginning of the pass.
  var end: MediaTime { segments.last.map { $0.start + $0.duration } ?? .zero }

  /// Discontinuities from the beginning of one pass to that of the next.
  var discontinuitiesPerPass: Int64 { Int64(segments.last?.discontinuity ?? 0) + 1 }
}
