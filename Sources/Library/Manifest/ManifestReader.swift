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

extension URL {
  /// The manifest's name in errors: the path of a file, the whole URL of anything else.
  package var manifestLocation: String { isFileURL ? path : absoluteString }
}

/// Limits on the size of a manifest, which protect a program from malformed or hostile servers.
public struct ManifestLimits: Sendable, Hashable {
  /// Bytes in a manifest. The default is 64 MiB; values above 4 GiB have no effect.
  public var byteCount: Int
  /// Segments in one rung. The default is 1,000,000.
  public var segments: Int
  /// `S` and `SegmentURL` elements in one MPD. The default is 1,000,000.
  public var timelineEntries: Int
  /// Periods, adaptation sets and representations in one MPD, or variants and renditions in one multivariant playlist,
  /// counted together. The default is 100,000.
  public var tracks: Int
  /// The nesting depth of XML elements. The default is 64.
  public var xmlDepth: Int
  /// XML elements in one MPD, except `S` and `SegmentURL`. The default is 1,000,000.
  public var xmlElements: Int
  /// Bytes in one URL, after substitution of variables. The default is 65,536.
  public var urlByteCount: Int
  /// Warnings that are kept; further ones are dropped. The default is 100.
  public var warnings: Int

  /// Creates limits.
  public init(
    byteCount: Int = 64 << 20, segments: Int = 1_000_000, timelineEntries: Int = 1_000_000,
    tracks: Int = 100_000, xmlDepth: Int = 64, xmlElements: Int = 1_000_000, urlByteCount: Int = 65_536,
    warnings: Int = 100
  ) {
    self.byteCount = byteCount
    self.segments = segments
    self.timelineEntries = timelineEntries
    self.tracks = tracks
    self.xmlDepth = xmlDepth
    self.xmlElements = xmlElements
    self.urlByteCount = urlByteCount
    self.warnings = warnings
  }

  /// Throws `badManifest` if a manifest is larger than the limit.
  package func check(_ bytes: [UInt8]) throws(ReelError) {
    let limit = min(byteCount, Int(UInt32.max))
    guard bytes.count <= limit else {
      throw ReelError(.badManifest, "larger than the limit of \(limit) bytes")
    }
  }
}

/// The warnings of one manifest, up to a limit.
package struct WarningLog: Sendable {
  let limit: Int
  package private(set) var warnings: [ReelError] = []

  init(limit: Int) { self.limit = limit }

  package mutating func add(_ reason: String, place: ReelError.Place? = nil) {
    add(ReelError(.badManifest, reason, place: place))
  }

  package mutating func add(_ warning: ReelError) {
    if warnings.count < limit { warnings.append(warning) }
  }
}
