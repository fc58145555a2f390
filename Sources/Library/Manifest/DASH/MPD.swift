package import ReelCore

/// A Media Presentation Description (ISO/IEC 23009-1 §5.3.1.2) as written: inherited values are not filled in.
package struct MPD: Sendable {
  /// @type (ISO/IEC 23009-1 §5.3.1.2).
  package enum PresentationType: String, Sendable {
    case `static`
    case dynamic
  }

  /// @profiles.
  package var profiles: [String] = []
  /// @type.
  package var type = PresentationType.static
  /// @availabilityStartTime, as it is written.
  package var availabilityStartTime: String?
  /// @availabilityEndTime, as it is written.
  package var availabilityEndTime: String?
  /// @publishTime, as it is written.
  package var publishTime: String?
  /// @mediaPresentationDuration.
  package var mediaPresentationDuration: MediaTime?
  /// @minimumUpdatePeriod.
  package var minimumUpdatePeriod: MediaTime?
  /// @minBufferTime.
  package var minBufferTime: MediaTime?
  /// @timeShiftBufferDepth.
  package var timeShiftBufferDepth: MediaTime?
  /// @suggestedPresentationDelay.
  package var suggestedPresentationDelay: MediaTime?
  /// @maxSegmentDuration.
  package var maxSegmentDuration: MediaTime?
  /// BaseURL elements (§5.6), in order.
  package var baseURLs: [BaseURL] = []
  /// Location elements.
  package var locations: [String] = []
  /// @target of the first Latency element that states one, of the ServiceDescription elements (§K.4.2.2): how far behind
  /// the live edge to play.
  package var latencyTarget: MediaTime?
  /// UTCTiming elements (§5.8.5.7).
  package var utcTimings: [Descriptor] = []
  /// EssentialProperty elements.
  package var essentialProperties: [Descriptor] = []
  /// ContentProtection elements, which those of adaptation sets may refer to.
  package var contentProtections: [Descriptor] = []
  /// Period elements, in order (§5.3.2).
  package var periods: [Period] = []
  /// Odd text that was ignored.
  package var warnings: [ReelError] = []
  /// The first of them that says that the length or the start of something is none.
  var malformedLength: ReelError?

  /// Reads an MPD. Throws `badManifest` with line and column.
  package init(_ bytes: [UInt8], limits: ManifestLimits = ManifestLimits()) throws(ReelError) {
    try limits.check(bytes)
    var context = MPDReader(bytes, limits: limits)
    try context.xml.root()
    guard context.xml.name == "MPD" else {
      let name = context.xml.name
      let what = name.lowercased() == "html" ? "it is an HTML page" : "its root element is <\(name.excerpt)>"
      throw context.xml.error("not an MPD: \(what)")
    }
    try read(&context)
    warnings = context.xml.warnings.warnings
    malformedLength =
      context.xml.malformedLengths.first {
        ["mediaPresentationDuration", "duration", "start"].contains($0.attribute)
      }?.warning
  }

  // MARK: - Private

  private mutating func read(_ reader: inout MPDReader) throws(ReelError) {
    profiles = reader.xml.string("profiles").map { $0.split(separator: ",").map { String($0).trimmed } } ?? []
    if let text = reader.xml.string("type") {
      if let type = PresentationType(rawValue: text.lowercased()) {
        self.type = type
      } else {
        reader.xml.warn("@type '\(text.excerpt)' is neither static nor dynamic: treated as static")
      }
    }
    availabilityStartTime = reader.xml.string("availabilityStartTime")
    availabilityEndTime = reader.xml.string("availabilityEndTime")
    publishTime = reader.xml.string("publishTime")
    mediaPresentationDuration = reader.xml.duration("mediaPresentationDuration")
    // If the attribute is present, the MPD has to be reloaded, even if its value can't be read.
    minimumUpdatePeriod = reader.xml.duration("minimumUpdatePeriod", fallback: .zero)
    minBufferTime = reader.xml.duration("minBufferTime")
    timeShiftBufferDepth = reader.xml.duration("timeShiftBufferDepth")
    suggestedPresentationDelay = reader.xml.duration("suggestedPresentationDelay")
    maxSegmentDuration = reader.xml.duration("maxSegmentDuration")
    while let child = try reader.xml.nextChild() {
      switch child {
      case "BaseURL": baseURLs.append(try BaseURL(&reader))
      case "Location": locations.append(try reader.xml.text())
      case "PatchLocation": try reader.checkPatchLocation()
      case "ServiceDescription":
        let target = try reader.latencyTarget()
        latencyTarget = latencyTarget ?? target
      case "UTCTiming": utcTimings.append(try Descriptor(&reader))
      case "EssentialProperty": essentialProperties.append(try Descriptor(&reader))
      case "ContentProtection": contentProtections.append(try Descriptor(&reader))
      case "Period": periods.append(try Period(&reader))
      default: try reader.xml.skip()
      }
    }
  }
}
