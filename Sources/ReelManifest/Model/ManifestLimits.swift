import ReelCore

/// How much a manifest may ask for. A manifest comes from a server, and whatever it says is bounded by these.
public struct ManifestLimits: Sendable, Hashable {
  /// Bytes of a manifest; 64 MiB unless told, 4 GiB at most.
  public var byteCount: Int
  /// Segments of one rung; 1,000,000 unless told.
  public var segments: Int
  /// `S` elements and `SegmentURL` elements of one MPD; 1,000,000 unless told.
  public var timelineEntries: Int
  /// Periods, adaptation sets and representations of one MPD together, or variants and renditions of one
  /// multivariant playlist; 100,000 unless told.
  public var tracks: Int
  /// How deep XML elements may be nested; 64 unless told.
  public var xmlDepth: Int
  /// XML elements of one MPD other than `S` and `SegmentURL`; 1,000,000 unless told.
  public var xmlElements: Int
  /// Bytes of one URL, after variables are put in; 65,536 unless told.
  public var urlByteCount: Int
  /// Warnings that are kept; 100 unless told.
  public var warnings: Int

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

  /// Throws `badManifest` where a manifest is larger than the limit.
  func check(_ bytes: [UInt8]) throws(ReelError) {
    let limit = min(byteCount, Int(UInt32.max))
    guard bytes.count <= limit else {
      throw ReelError(.badManifest, "larger than the limit of \(limit) bytes")
    }
  }
}
