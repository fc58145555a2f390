package import Foundation
package import ReelCore

extension URL {
  /// The manifest's name in errors: the path of a file, the whole URL of anything else.
  package var manifestLocation: String { isFileURL ? path : absoluteString }
}

/// Limits on the size of a manifest, which protect a program from malformed or hostile servers.
package struct ManifestLimits: Sendable, Hashable {
  /// Bytes in a manifest. The default is 64 MiB; values above 4 GiB have no effect.
  package var byteCount: Int
  /// Segments in one rung. The default is 1,000,000.
  package var segments: Int
  /// `S` and `SegmentURL` elements in one MPD. The default is 1,000,000.
  package var timelineEntries: Int
  /// Periods, adaptation sets and representations in one MPD, or variants and renditions in one multivariant playlist,
  /// counted together. The default is 100,000.
  package var tracks: Int
  /// The nesting depth of XML elements. The default is 64.
  package var xmlDepth: Int
  /// XML elements in one MPD, except `S` and `SegmentURL`. The default is 1,000,000.
  package var xmlElements: Int
  /// Bytes in one URL, after substitution of variables. The default is 65,536.
  package var urlByteCount: Int
  /// Warnings that are kept; further ones are dropped. The default is 100.
  package var warnings: Int

  /// Creates limits.
  package init(
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
