import ReelCore
import ReelManifest

extension MPDRules {
  /// The state of the previous periods.
  struct PeriodState {
    var isDynamic: Bool
    var count = 0
    var lastHasDuration = false
    /// The start of the previous period, if stated.
    var start: MediaTime?
    /// The end of the previous period, if it states one.
    var end: MediaTime? = .zero
    /// True if the previous period is in another file.
    var isRemote = false
    var ids: Set<String> = []
  }

  /// The context that elements inherit from their parents.
  struct Inherited {
    var path: String
    var hasBaseURL = false
    var hasMimeType = false
    /// An ancestor's or its own segment information.
    var segments: Set<String> = []
    /// True if an ancestor states a @media.
    var hasMedia = false
    var hasTimeline = false
    var hasDuration = false
  }

  mutating func period(_ state: inout PeriodState) throws(ReelError) {
    state.count += 1
    let path = "MPD/Period[\(state.count)]"
    for name: StaticString in ["start", "duration"] { duration(name, "§5.3.2.2") }
    if let id = xml.string("id") {
      if !state.ids.insert(id).inserted {
        report("the @id '\(id.excerpt)' of a Period is not unique", "§5.3.2.2")
      }
    } else if state.isDynamic {
      report("a Period has no @id, @type being dynamic", "§5.3.2.2")
    }
    let start = xml.string("start").flatMap { XMLDuration($0) }?.time
    let length = xml.string("duration").flatMap { XMLDuration($0) }?.time
    if let start, let before = state.start, start < before {
      report("a Period starts before the one before it", "§5.3.2.1")
    } else if let start, let end = state.end, state.count > 1, start < end {
      report("a Period starts before the one before it has ended", "§5.3.2.1")
    }
    if state.count == 1, let start, start > .zero, !state.isDynamic {
      report("the first Period does not start at 0, @type being static", "§5.3.2.1")
    }
    if start == nil, state.end == nil, !state.isDynamic, !state.isRemote {
      report("a Period has no @start, and the one before it no @duration", "§5.3.2.1")
    }
    let from = start ?? state.end
    state.start = from ?? state.start
    state.end = length.flatMap { length in from.map { $0 + length } }
    state.lastHasDuration = length != nil
    let isRemote = xml.string(anyPrefix: "href") != nil
    if isRemote { checkLink() }
    state.isRemote = isRemote

    var inherited = Inherited(path: path)
    var (order, setIDs, ids): (ElementOrder, Set<String>, Set<String>) = (ElementOrder(.period), [], [])
    var sets = 0
    while let child = try nextChild(of: "Period", &order) {
      switch child {
      case "AdaptationSet":
        sets += 1
        if let id = xml.string("id"), !setIDs.insert(id).inserted {
          report("the @id '\(id.excerpt)' of an AdaptationSet is not unique in its Period", "§5.3.3.2")
        }
        try adaptationSet(inherited, path: "\(path)/AdaptationSet[\(sets)]", ids: &ids)
      case "BaseURL": try baseURL(&inherited)
      case "SegmentBase", "SegmentList", "SegmentTemplate": try segments(child, &inherited)
      case "AssetIdentifier", "SupplementalProperty", "EssentialProperty", "ContentProtection":
        try descriptor(child)
      case "EventStream": try eventStream()
      case "ServiceDescription": try serviceDescription()
      default: try xml.skip()
      }
    }
    if sets == 0, !isRemote, length != .zero, !state.isDynamic {
      report("a Period has no AdaptationSet", "§5.3.2.2", path: path)
    }
  }

  mutating func serviceDescription() throws(ReelError) {
    while let child = try xml.nextChild() {
      if child == "Latency", isOwn { naturals(["target", "min", "max"], "§K.4.2.2") }
      try xml.skip()
    }
  }

  // MARK: - Private

  private mutating func adaptationSet(
    _ period: Inherited, path: String, ids: inout Set<String>
  ) throws(ReelError) {
    var inherited = period
    inherited.path = path
    naturals(
      [
        "id", "group", "minBandwidth", "maxBandwidth", "minWidth", "maxWidth", "minHeight", "maxHeight",
        "width",
        "height", "selectionPriority",
      ], "§5.3.3.2")
    common()
    bounds("minBandwidth", "maxBandwidth")
    bounds("minWidth", "maxWidth")
    bounds("minHeight", "maxHeight")
    inherited.hasMimeType = xml.string("mimeType") != nil
    let isRemote = xml.string(anyPrefix: "href") != nil
    if isRemote { checkLink() }
    var (order, count) = (ElementOrder(.adaptationSet), 0)
    while let child = try nextChild(of: "AdaptationSet", &order) {
      switch child {
      case "Representation":
        count += 1
        try representation(inherited, path: "\(path)/Representation[\(count)]", ids: &ids)
      case "BaseURL": try baseURL(&inherited)
      case "SegmentBase", "SegmentList", "SegmentTemplate": try segments(child, &inherited)
      default: try other(child)
      }
    }
    if count == 0, !isRemote { report("an AdaptationSet has no Representation", "§5.3.3.2", path: path) }
  }

  private mutating func representation(
    _ set: Inherited, path: String, ids: inout Set<String>
  ) throws(ReelError) {
    var inherited = set
    inherited.path = path
    if let id = xml.string("id") {
      if id.contains(where: \.isWhitespace) {
        report("the @id '\(id.excerpt)' of a Representation has white space", "§5.3.5.2")
      }
      if !ids.insert(id).inserted {
        report("the @id '\(id.excerpt)' of a Representation is not unique in its Period", "§5.3.5.2")
      }
    } else {
      report("a Representation has no @id", "§5.3.5.2")
    }
    if xml.string("bandwidth") == nil { report("a Representation has no @bandwidth", "§5.3.5.2") }
    naturals(["bandwidth", "qualityRanking", "width", "height", "selectionPriority"], "§5.3.5.2")
    common()
    if !inherited.hasMimeType, xml.string("mimeType") == nil {
      report("a Representation has no @mimeType, nor has its AdaptationSet", "§5.3.7.2")
    }
    var order = ElementOrder(.representation)
    while let child = try nextChild(of: "Representation", &order) {
      switch child {
      case "BaseURL": try baseURL(&inherited)
      case "SegmentBase", "SegmentList", "SegmentTemplate": try segments(child, &inherited)
      default: try other(child)
      }
    }
    if inherited.segments.isEmpty, !inherited.hasBaseURL {
      report("a Representation has neither segment information nor a BaseURL", "§5.3.9.1", path: path)
    }
    if inherited.segments.contains("SegmentTemplate") {
      if !inherited.hasMedia { report("a SegmentTemplate has no @media", "§5.3.9.4.2", path: path) }
    }
  }

  private mutating func other(_ child: String) throws(ReelError) {
    switch child {
    case "FramePacking", "AudioChannelConfiguration", "ContentProtection", "EssentialProperty",
      "SupplementalProperty", "InbandEventStream", "Accessibility", "Role", "Rating", "Viewpoint":
      try descriptor(child)
    case "ProducerReferenceTime":
      naturals(["presentationTime"], "§5.12.2")
      try xml.skip()
    default: try xml.skip()
    }
  }

  /// Checks the numbers of an AdaptationSet or a Representation that have a special format.
  private mutating func common() {
    form("frameRate", "a frame rate", "§5.3.7.2") { Rational(frameRate: $0) != nil }
    form("sar", "a ratio", "§5.3.7.2") { Rational(ratio: $0, separator: ":") != nil }
  }

  private mutating func eventStream() throws(ReelError) {
    naturals(["timescale", "presentationTimeOffset"], "§5.10.2.2")
    if (xml.string("schemeIdUri") ?? "").isEmpty { report("EventStream has no @schemeIdUri", "§5.8.2") }
    while let child = try xml.nextChild() {
      if child == "Event", isOwn { naturals(["presentationTime", "duration"], "§5.10.2.2") }
      try xml.skip()
    }
  }

  private mutating func baseURL(_ inherited: inout Inherited) throws(ReelError) {
    if let text = xml.string("availabilityTimeOffset"), AvailabilityTimeOffset(text) == nil {
      report("@availabilityTimeOffset '\(text.excerpt)' is not an xs:double", "§5.6.2")
    }
    inherited.hasBaseURL = true
    try xml.skip()
  }

  private mutating func bounds(_ low: StaticString, _ high: StaticString) {
    guard let minimum = xml.string(low)?.integer, let maximum = xml.string(high)?.integer else { return }
    if minimum > maximum { report("@\(low) is above @\(high)", "§5.3.3.2") }
  }

  private mutating func checkLink() {
    let href = xml.string(anyPrefix: "href") ?? ""
    let scheme = href.prefix { $0 != ":" }.lowercased()
    if href.contains(":"), !["http", "https", "urn"].contains(scheme) {
      report("@xlink:href '\(href.excerpt)' is not an HTTP URL", "§5.5.2")
    }
    if let actuate = xml.string(anyPrefix: "actuate"), actuate != "onLoad", actuate != "onRequest" {
      report("@xlink:actuate '\(actuate.excerpt)' is neither onLoad nor onRequest", "§5.5.2")
    }
  }
}
