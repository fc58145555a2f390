import ReelCore

extension MPD {
  /// Representation (ISO/IEC 23009-1 §5.3.5).
  package struct Representation: Sendable {
    /// @id.
    package var id: String?
    /// @bandwidth, in bits per second.
    package var bandwidth: Int64?
    /// @dependencyId: the Representations that this one can't be decoded without.
    package var dependencyID: String?
    /// Its own attributes.
    package var common: CommonAttributes
    /// BaseURL elements (§5.6), in order.
    package var baseURLs: [BaseURL] = []
    /// SegmentBase, SegmentList or SegmentTemplate (§5.3.9).
    package var segments = SegmentInformation()

    init(_ reader: inout MPDReader) throws(ReelError) {
      try reader.countTrack()
      id = reader.xml.string("id")
      bandwidth = reader.xml.positive("bandwidth")
      reader.xml.checkWhole("qualityRanking")
      dependencyID = reader.xml.string("dependencyId")
      common = CommonAttributes(&reader)
      while let child = try reader.xml.nextChild() {
        if child == "BaseURL" {
          baseURLs.append(try BaseURL(&reader))
          continue
        }
        if try common.read(child, &reader) { continue }
        if try segments.read(child, &reader) { continue }
        try reader.xml.skip()
      }
    }
  }
}
