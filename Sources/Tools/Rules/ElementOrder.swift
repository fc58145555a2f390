import ReelManifest

/// Checks the order of an element's children against the schema (ISO/IEC 23009-1 Annex B).
struct ElementOrder {
  /// The children of one element, in order.
  struct Sequence: Sendable {
    fileprivate let ranks: [String: Int]
    /// Those of later editions or without a place that matters.
    fileprivate let others: Set<String>

    init(_ names: [String], others: Set<String> = []) {
      ranks = Dictionary(names.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
      self.others = others
    }

    static let mpd = Sequence(
      [
        "ProgramInformation", "BaseURL", "Location", "PatchLocation", "ServiceDescription",
        "InitializationSet",
        "InitializationGroup", "InitializationPresentation", "ContentProtection", "Period", "Metrics",
        "EssentialProperty", "SupplementalProperty", "UTCTiming", "LeapSecondInformation",
      ], others: ["ContentSteering", "ExtendedBandwidth", "Preroll"])

    static let period = Sequence(
      [
        "BaseURL", "SegmentBase", "SegmentList", "SegmentTemplate", "AssetIdentifier", "EventStream",
        "ServiceDescription", "ContentProtection", "AdaptationSet", "Subset", "SupplementalProperty",
        "EmptyAdaptationSet", "GroupLabel", "Preselection",
      ], others: ["EssentialProperty"])

    static let adaptationSet = Sequence(
      common + [
        "Accessibility", "Role", "Rating", "Viewpoint", "ContentComponent", "BaseURL", "SegmentBase",
        "SegmentList", "SegmentTemplate", "Representation",
      ], others: ["EventStream"])

    static let representation = Sequence(
      common + [
        "BaseURL", "SubRepresentation", "ExtendedBandwidth", "SegmentBase", "SegmentList", "SegmentTemplate",
      ])

    static let segments = Sequence(
      [
        "Initialization", "RepresentationIndex", "FailoverContent", "SegmentTimeline", "BitstreamSwitching",
        "SegmentURL",
      ])

    private static let common = [
      "FramePacking", "AudioChannelConfiguration", "ContentProtection", "OutputProtection",
      "EssentialProperty",
      "SupplementalProperty", "InbandEventStream", "Switching", "RandomAccess", "GroupLabel", "Label",
      "ProducerReferenceTime", "ContentPopularityRate", "Resync",
    ]
  }

  enum Verdict: Equatable {
    case inOrder
    /// The schema has no such child.
    case unknown
    /// Should have preceded this earlier child.
    case after(String)
  }

  private let sequence: Sequence
  private var highest = -1
  private var name = ""

  init(_ sequence: Sequence) { self.sequence = sequence }

  /// The verdict on the next child.
  mutating func add(_ child: String) -> Verdict {
    guard let rank = sequence.ranks[child] else {
      return sequence.others.contains(child) ? .inOrder : .unknown
    }
    guard rank >= highest else { return .after(name) }
    (highest, name) = (rank, child)
    return .inOrder
  }
}
