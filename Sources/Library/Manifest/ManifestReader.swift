package import Foundation
package import ReelCore

/// Reads the manifests of HLS (RFC 8216) and DASH (ISO/IEC 23009-1), and the `sidx` that an MPD may refer to.
///
/// It does no input or output, and takes limited time and memory for any bytes (`limits`). Every error names
/// the manifest's URL and, if possible, the line or element.
package struct ManifestReader: Sendable {
  package let limits: ManifestLimits

  package init(limits: ManifestLimits = ManifestLimits()) {
    self.limits = limits
  }

  /// Returns the presentation of `bytes`: an HLS multivariant playlist, an HLS media playlist (one period
  /// with one group of one rung, whose segments are known), or an MPD.
  ///
  /// `url` is the location of the manifest after redirects; references are relative to it. `now` is the current
  /// time: a live MPD lists the segments available then. Throws `badManifest`, or `unsupported` for features
  /// that are not played.
  package func presentation(
    from bytes: [UInt8], format: ManifestFormat, url: URL, now: WallTime = .now
  ) throws(ReelError) -> Presentation {
    do throws(ReelError) {
      try limits.check(bytes)
      switch format {
      case .hls:
        switch try PlaylistKind(bytes) {
        case .multivariant:
          return try MultivariantPlaylist(bytes, url: url, limits: limits)
            .presentation(url: url, limits: limits)
        case .media:
          return try MediaPlaylist(bytes, url: url, limits: limits).presentation(url: url, limits: limits)
        }
      case .dash:
        let mpd = try MPD(bytes, limits: limits)
        return try MPDMapper(mpd, url: url, limits: limits, now: now).presentation()
      }
    } catch {
      throw error.located(at: url.manifestLocation)
    }
  }

  /// Returns the media playlist of a rung. `variables` are those of the multivariant playlist
  /// (`Presentation.variables`).
  ///
  /// Throws `badManifest` with the line.
  package func mediaPlaylist(
    from bytes: [UInt8], url: URL, variables: [String: String] = [:]
  ) throws(ReelError) -> MediaPlaylistSegments {
    do throws(ReelError) {
      try limits.check(bytes)
      guard try PlaylistKind(bytes) == .media else {
        throw ReelError(.badManifest, "a multivariant playlist instead of a media playlist")
      }
      return try MediaPlaylist(bytes, url: url, limits: limits, variables: variables)
        .playlistSegments(url: url, limits: limits)
    } catch {
      throw error.located(at: url.manifestLocation)
    }
  }

  /// Returns the segments listed by a `sidx` (ISO/IEC 14496-12 §8.16.3). `bytes` start at `offset` in the
  /// file. They contain the whole `sidx`, including those that it refers to, and may contain boxes before and
  /// bytes after it. If some are missing, use a `SegmentIndexReader`.
  ///
  /// Throws `badMedia` with the byte, or `unsupported` for an index that refers to other bytes.
  package func segments(
    fromIndex bytes: [UInt8], at offset: Int64, of reference: SegmentIndexReference
  ) throws(ReelError) -> SegmentList {
    var reader = SegmentIndexReader(reference: reference, limits: limits)
    try reader.add(bytes, at: offset)
    if let missing = reader.missing {
      let isOutside = missing.offset >= offset &+ Int64(bytes.count)
      throw ReelError(
        isOutside ? .unsupported : .badMedia,
        isOutside ? "the sidx refers to others that are not available" : "the sidx ends too early",
        at: reference.url.manifestLocation, place: .byte(missing.offset))
    }
    return try reader.segments()
  }
}
