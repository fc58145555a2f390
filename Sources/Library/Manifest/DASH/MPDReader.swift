import ReelCore

/// The reader for the elements of one MPD: the XML, and the counts of limited items.
struct MPDReader {
  var xml: XMLReader
  private let limits: ManifestLimits
  private var tracks = 0
  private var timelineEntries = 0

  init(_ bytes: [UInt8], limits: ManifestLimits) {
    xml = XMLReader(bytes, limits: limits)
    self.limits = limits
  }

  /// Counts a Period, AdaptationSet or Representation. Throws `badManifest` above the limit.
  mutating func countTrack() throws(ReelError) {
    tracks += 1
    guard tracks <= limits.tracks else {
      throw xml.error("more than \(limits.tracks) periods, adaptation sets and representations")
    }
  }

  /// Counts an `S` or SegmentURL. Throws `badManifest` above the limit.
  mutating func countTimelineEntry() throws(ReelError) {
    timelineEntries += 1
    guard timelineEntries <= limits.timelineEntries else {
      throw xml.error("more than \(limits.timelineEntries) timeline entries")
    }
  }
}
