import Foundation
import ReelCore
import ReelManifest

/// Finds violations of ISO/IEC 23009-1 in an MPD, whether it can be played or not.
///
/// It is a separate pass over the text, because the model's reader tolerates the same errors as players.
struct MPDRules {
  var xml: XMLReader
  /// The violations, at most `limit`.
  private(set) var violations: [RuleViolation] = []
  private let limit: Int
  /// The prefix of the root element: elements with another one do not belong to the standard.
  var ownPrefix = ""
  /// The namespace that the root element binds: elements that bind another one do not belong to the standard.
  var ownNamespace = MPDRules.namespace

  /// Returns the violations in `bytes`, in order, each with line and column or the path of the element, and
  /// with the violated clause; at most `limits.warnings`. If the text is not XML or exceeds the limits, the
  /// last one is the error that ended reading.
  static func violations(in bytes: [UInt8], url: URL, limits: ManifestLimits) -> [RuleViolation] {
    var rules = MPDRules(bytes, limits)
    do throws(ReelError) {
      try limits.check(bytes)
      try rules.check()
    } catch {
      if rules.hasRoom { rules.violations.append(RuleViolation(error, .loss)) }
    }
    return rules.violations.map { $0.located(at: url.manifestLocation) }
  }

  // MARK: - For its extensions

  /// Reports a violation at the start tag that was read last.
  mutating func report(_ reason: String, _ clause: String, _ effect: RuleViolation.Effect = .risk) {
    guard hasRoom else { return }
    add(reason, clause, effect, place: xml.tagPlace())
  }

  /// Reports a violation of an element that has been read to its end.
  mutating func report(
    _ reason: String, _ clause: String, _ effect: RuleViolation.Effect = .risk, path: String
  ) {
    if hasRoom { add(reason, clause, effect, place: .element(path)) }
  }

  /// True if the last start tag belongs to the standard's namespace, according to its prefix.
  var isOwn: Bool { xml.prefix == ownPrefix && (xml.namespace ?? ownNamespace) == ownNamespace }

  static let namespace = "urn:mpeg:dash:schema:mpd:2011"

  // MARK: - Private

  private init(_ bytes: [UInt8], _ limits: ManifestLimits) {
    xml = XMLReader(bytes, limits: limits)
    limit = limits.warnings
  }

  private var hasRoom: Bool { violations.count < limit }

  private mutating func add(
    _ reason: String, _ clause: String, _ effect: RuleViolation.Effect, place: ReelError.Place
  ) {
    violations.append(RuleViolation(reason, clause: "ISO/IEC 23009-1 \(clause)", effect, place: place))
  }

  private mutating func check() throws(ReelError) {
    try xml.root()
    guard xml.name == "MPD" else { throw xml.error("not an MPD: its root element is <\(xml.name.excerpt)>") }
    ownPrefix = xml.prefix
    if let namespace = xml.namespace {
      if namespace != Self.namespace {
        // The descendants have the same namespace, so report it once.
        report("the namespace is '\(namespace.excerpt)', not '\(Self.namespace)'", "Annex B", .harmless)
        ownNamespace = namespace
      }
    } else {
      report("the namespace '\(Self.namespace)' is missing", "Annex B", .harmless)
    }
    let presentation = attributes()
    var order = ElementOrder(.mpd)
    var periods = PeriodState(isDynamic: presentation.isDynamic)
    while let child = try nextChild(of: "MPD", &order) {
      switch child {
      case "Period": try period(&periods)
      case "BaseURL":
        periods.hasBaseURL = true
        try xml.skip()
      case "ServiceDescription": try serviceDescription()
      case "PatchLocation":
        form("ttl", "an xs:double", "§5.15.2") { XMLDuration($0)?.isWellFormed == false }
        try xml.skip()
      case "UTCTiming", "EssentialProperty", "SupplementalProperty", "ContentProtection":
        try descriptor(child)
      default: try xml.skip()
      }
    }
    if periods.count == 0 { report("there is no Period", "§5.3.1.2", path: "MPD") }
    if !presentation.hasDuration, !presentation.hasUpdates, !periods.lastHasDuration, periods.count > 0 {
      report(
        "neither @mediaPresentationDuration, @minimumUpdatePeriod nor @duration of the last Period tells the length",
        "§5.3.1.2", path: "MPD")
    }
  }

  private struct Attributes {
    var isDynamic: Bool
    var hasDuration: Bool
    var hasUpdates: Bool
  }

  /// Returns the attributes of the MPD element.
  private mutating func attributes() -> Attributes {
    let type = xml.string("type")
    if let type, type != "static", type != "dynamic" {
      report("@type '\(type.excerpt)' is neither static nor dynamic", "§5.3.1.2")
    }
    let isDynamic = type == "dynamic"
    if (xml.string("profiles") ?? "").isEmpty { report("@profiles is missing", "§5.3.1.2", .harmless) }
    if xml.string("minBufferTime") == nil { report("@minBufferTime is missing", "§5.3.1.2", .harmless) }
    for name: StaticString in ["availabilityStartTime", "availabilityEndTime", "publishTime"] { date(name) }
    for name: StaticString in [
      "mediaPresentationDuration", "minimumUpdatePeriod", "minBufferTime", "timeShiftBufferDepth",
      "suggestedPresentationDelay", "maxSegmentDuration", "maxSubsegmentDuration",
    ] {
      duration(name, "§5.3.1.2")
    }
    if isDynamic {
      if xml.string("availabilityStartTime") == nil {
        report("@availabilityStartTime is missing, @type being dynamic", "§5.3.1.2")
      }
      if xml.string("publishTime") == nil {
        report("@publishTime is missing, @type being dynamic", "§5.3.1.2", .harmless)
      }
    } else {
      for name: StaticString in ["minimumUpdatePeriod", "timeShiftBufferDepth", "suggestedPresentationDelay"]
      where xml.string(name) != nil {
        report("@\(name) is there, @type being static", "§5.3.1.2", .harmless)
      }
    }
    if let text = xml.string("mediaPresentationDuration"), XMLDuration(text)?.time == .zero {
      report("@mediaPresentationDuration is 0", "§5.3.1.2")
    }
    return Attributes(
      isDynamic: isDynamic, hasDuration: xml.string("mediaPresentationDuration") != nil,
      hasUpdates: xml.string("minimumUpdatePeriod") != nil)
  }
}

// MARK: - Values

extension MPDRules {
  /// Checks an attribute that must be an `xs:duration`.
  mutating func duration(_ name: StaticString, _ clause: String) {
    guard let text = xml.string(name) else { return }
    if XMLDuration(text)?.isWellFormed != true {
      report("@\(name) '\(text.excerpt)' is not an xs:duration of 0 or more", clause)
    }
  }

  /// Checks an attribute that must be an `xs:dateTime`.
  mutating func date(_ name: StaticString) {
    guard let text = xml.string(name) else { return }
    if !text.contains("T") || WallTime(iso8601: text) == nil {
      report("@\(name) '\(text.excerpt)' is not an xs:dateTime", "§5.3.1.2")
    }
  }

  /// Attributes that no player needs.
  private static let metadata: Set<String> = [
    "eptDelta", "group", "maxBandwidth", "minBandwidth", "presentationTime", "qualityRanking",
    "selectionPriority", "target", "ttl",
  ]

  /// What another value of an attribute means.
  private static func effect(of name: StaticString) -> RuleViolation.Effect {
    metadata.contains(name.description) ? .harmless : .risk
  }

  /// Checks attributes that must be whole numbers, at least 0.
  mutating func naturals(_ names: [StaticString], _ clause: String) {
    for name in names {
      guard let text = xml.string(name) else { continue }
      if UInt64(text) == nil {
        report("@\(name) '\(text.excerpt)' is not a whole number of 0 or more", clause, Self.effect(of: name))
      }
    }
  }

  /// Checks an attribute that must be a whole number.
  mutating func integer(_ name: StaticString, _ clause: String) {
    guard let text = xml.string(name), text.integer == nil else { return }
    report("@\(name) '\(text.excerpt)' is not a whole number", clause, Self.effect(of: name))
  }

  /// Checks an attribute of another format with `isValid`.
  mutating func form(_ name: StaticString, _ what: String, _ clause: String, _ isValid: (String) -> Bool) {
    guard let text = xml.string(name), !isValid(text) else { return }
    report("@\(name) '\(text.excerpt)' is not \(what)", clause, Self.effect(of: name))
  }

  /// Checks attributes that must be byte ranges.
  mutating func ranges(_ names: [StaticString], _ clause: String) {
    for name in names {
      do throws(ReelError) {
        _ = try xml.byteRange(name)
        // The schema allows a number alone, the text does not.
        if let text = xml.string(name), !text.contains("-") {
          report("@\(name) '\(text.excerpt)' is not a byte range of the form first-last", clause)
        }
      } catch {
        report(error.reason, clause)
      }
    }
  }

  /// Checks and consumes a descriptor (§5.8.2).
  mutating func descriptor(_ name: String) throws(ReelError) {
    let isReference = name == "ContentProtection" && xml.string("ref") != nil
    if (xml.string("schemeIdUri") ?? "").isEmpty, !isReference {
      report("\(name) has no @schemeIdUri", "§5.8.2", .harmless)
    }
    try xml.skip()
  }

  /// Returns the next child in the standard's namespace, after a check of its position among its siblings.
  mutating func nextChild(of parent: String, _ order: inout ElementOrder) throws(ReelError) -> String? {
    while let child = try xml.nextChild() {
      guard isOwn else {
        try xml.skip()
        continue
      }
      switch order.add(child) {
      case .inOrder: break
      case .unknown: report("<\(child.excerpt)> is not an element of \(parent)", "Annex B", .harmless)
      case .after(let other):
        report("\(child) stands after \(other), which has to follow it", "Annex B", .harmless)
      }
      return child
    }
    return nil
  }
}

extension MPDRules {
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
    /// True if the MPD has a BaseURL, which may be that of the only segment.
    var hasBaseURL = false
  }

  /// The context that elements inherit from their parents.
  struct Inherited {
    var path: String
    var hasBaseURL = false
    var hasMimeType = false
    /// The element's own or inherited segment information.
    var segments: Set<String> = []
    /// True if an ancestor states a @media.
    var hasMedia = false
    /// True if the @media that counts contains the time of a segment.
    var usesTime = false
    /// The number of segments of the SegmentList that counts.
    var urlCount = 0
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
      report("a Period has no @id, @type being dynamic", "§5.3.2.2", .harmless)
    }
    let start = xml.string("start").flatMap { XMLDuration($0) }?.time
    let length = xml.string("duration").flatMap { XMLDuration($0) }?.time
    if let start, let before = state.start, start < before {
      report("a Period starts before the one before it", "§5.3.2.1")
    } else if let start, let end = state.end, state.count > 1, start < end {
      report("a Period starts before the one before it has ended", "§5.3.2.1")
    }
    if state.count == 1, let start, start > .zero, !state.isDynamic {
      report("the first Period does not start at 0, @type being static", "§5.3.2.1", .harmless)
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

    var inherited = Inherited(path: path, hasBaseURL: state.hasBaseURL)
    var (order, setIDs, ids): (ElementOrder, Set<String>, Set<String>) = (ElementOrder(.period), [], [])
    var sets = 0
    while let child = try nextChild(of: "Period", &order) {
      switch child {
      case "AdaptationSet":
        sets += 1
        if let id = xml.string("id"), !setIDs.insert(id).inserted {
          report(
            "the @id '\(id.excerpt)' of an AdaptationSet is not unique in its Period", "§5.3.3.2", .harmless)
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
      report("a Period has no AdaptationSet", "§5.3.2.2", .harmless, path: path)
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
    if count == 0, !isRemote {
      report("an AdaptationSet has no Representation", "§5.3.3.2", .harmless, path: path)
    }
  }

  private mutating func representation(
    _ set: Inherited, path: String, ids: inout Set<String>
  ) throws(ReelError) {
    var inherited = set
    inherited.path = path
    if let id = xml.string("id") {
      if id.contains(where: \.isWhitespace) {
        report("the @id '\(id.excerpt)' of a Representation has white space", "§5.3.5.2", .harmless)
      }
      if !ids.insert(id).inserted {
        report("the @id '\(id.excerpt)' of a Representation is not unique in its Period", "§5.3.5.2")
      }
    } else {
      report("a Representation has no @id", "§5.3.5.2")
    }
    if xml.string("bandwidth") == nil {
      let isText = xml.string("mimeType").map { $0.hasPrefix("text/") || $0.contains("ttml") } ?? false
      report(
        "a Representation \(isText ? "of text " : "")has no @bandwidth", "§5.3.5.2",
        isText ? .harmless : .risk)
    }
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
      report("a Representation has neither segment information nor a BaseURL", "§5.3.9.1", .loss, path: path)
    }
    if inherited.segments.contains("SegmentTemplate") {
      if !inherited.hasMedia { report("a SegmentTemplate has no @media", "§5.3.9.4.2", .loss, path: path) }
    }
    // The attributes and the timeline of segments may come from different levels (§5.3.9.1).
    guard !inherited.hasTimeline, !inherited.hasDuration else { return }
    if inherited.usesTime { report("$Time$ without a SegmentTimeline", "§5.3.9.4.4", path: path) }
    if inherited.urlCount > 1 {
      report("several segments, and neither @duration nor a SegmentTimeline", "§5.3.9.2.1", path: path)
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
    if (xml.string("schemeIdUri") ?? "").isEmpty {
      report("EventStream has no @schemeIdUri", "§5.8.2", .harmless)
    }
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
    if minimum > maximum { report("@\(low) is above @\(high)", "§5.3.3.2", .harmless) }
  }

  private mutating func checkLink() {
    let href = xml.string(anyPrefix: "href") ?? ""
    let scheme = href.prefix { $0 != ":" }.lowercased()
    if href.contains(":"), !["http", "https", "urn"].contains(scheme) {
      report("@xlink:href '\(href.excerpt)' is not an HTTP URL", "§5.5.2", .harmless)
    }
    if let actuate = xml.string(anyPrefix: "actuate"), actuate != "onLoad", actuate != "onRequest" {
      report("@xlink:actuate '\(actuate.excerpt)' is neither onLoad nor onRequest", "§5.5.2", .harmless)
    }
  }
}

extension MPDRules {
  /// Checks and consumes a SegmentBase, SegmentList or SegmentTemplate (§5.3.9).
  mutating func segments(_ kind: String, _ inherited: inout Inherited) throws(ReelError) {
    if inherited.segments.contains(where: { $0 != kind }) {
      report(
        "\(kind) where there is a SegmentBase, SegmentList or SegmentTemplate of another kind", "§5.3.9.1")
    }
    inherited.segments.insert(kind)
    naturals(
      [
        "timescale", "presentationTimeOffset", "presentationDuration", "duration", "startNumber", "endNumber",
      ],
      "§5.3.9.2.2")
    integer("eptDelta", "§5.3.9.2.2")
    if xml.string("timescale")?.integer == 0 { report("@timescale is 0", "§5.3.9.2.2") }
    if xml.string("duration")?.integer == 0 { report("@duration is 0", "§5.3.9.2.2") }
    ranges(["indexRange"], "§5.3.9.2.2")
    if xml.string("indexRangeExact") != nil, xml.string("indexRange") == nil {
      report("@indexRangeExact without @indexRange", "§5.3.9.2.2", .harmless)
    }
    if let text = xml.string("availabilityTimeOffset"), AvailabilityTimeOffset(text) == nil {
      report("@availabilityTimeOffset '\(text.excerpt)' is not an xs:double", "§5.3.9.2.2")
    }
    let hasDuration = xml.string("duration") != nil
    if kind == "SegmentBase", hasDuration { report("SegmentBase has a @duration", "§5.3.9.2.2") }
    if kind == "SegmentTemplate" { templates(&inherited) }

    var (order, hasTimeline, urls) = (ElementOrder(.segments), false, 0)
    while let child = try nextChild(of: kind, &order) {
      switch child {
      case "SegmentTimeline":
        hasTimeline = true
        if hasDuration { report("both @duration and SegmentTimeline", "§5.3.9.2.1") }
        try timeline()
      case "SegmentURL":
        urls += 1
        ranges(["mediaRange", "indexRange"], "§5.3.9.3.2")
        try xml.skip()
      case "Initialization", "RepresentationIndex", "BitstreamSwitching":
        ranges(["range"], "§5.3.9.2.2")
        try xml.skip()
      default: try xml.skip()
      }
    }
    if hasTimeline || hasDuration {
      inherited.hasTimeline = hasTimeline
      inherited.hasDuration = hasDuration
    }
    if urls > 0 { inherited.urlCount = urls }
  }

  // MARK: - Private

  /// Checks the templates of a SegmentTemplate.
  private mutating func templates(_ inherited: inout Inherited) {
    for name: StaticString in ["media", "index", "initialization", "bitstreamSwitching"] {
      guard let text = xml.string(name) else { continue }
      do throws(ReelError) {
        // A missing @id or @bandwidth is reported elsewhere.
        let template = try SegmentURLTemplate(text, representationID: "", bandwidth: 0)
        let isCommon = name.description == "initialization" || name.description == "bitstreamSwitching"
        if isCommon, template.isPerSegment || template.usesSubNumber {
          report("@\(name) names a segment ($Number$, $Time$ or $SubNumber$)", "§5.3.9.4.2")
        }
        if template.usesNumber, template.usesTime {
          report("@\(name) has both $Number$ and $Time$", "§5.3.9.4.4")
        }
        if text.contains("$RepresentationID%") {
          report("@\(name) has a format for $RepresentationID$", "§5.3.9.4.4")
        }
        if name.description == "media" {
          inherited.hasMedia = true
          inherited.usesTime = template.usesTime
        }
      } catch {
        if name.description == "media" { inherited.hasMedia = true }
        report("@\(name): \(error.reason)", "§5.3.9.4.4")
      }
    }
  }

  private mutating func timeline() throws(ReelError) {
    var (next, isEndless): (UInt64?, Bool) = (0, false)
    while let child = try xml.nextChild() {
      guard child == "S", isOwn else {
        try xml.skip()
        continue
      }
      naturals(["t", "n", "d", "k"], "§5.3.9.6.2")
      let repeatCount = xml.string("r") ?? "0"
      if repeatCount.integer == nil {
        report("@r '\(repeatCount.excerpt)' is not a whole number", "§5.3.9.6.2")
      }
      if xml.string("k")?.integer == 0 { report("@k is 0", "§5.3.9.6.2") }
      let start = xml.string("t").flatMap { UInt64($0) }
      if isEndless, start == nil { report("S has no @t, and the one before it @r below 0", "§5.3.9.6.2") }
      if let start, let next, start < next {
        // Overlaps by rounding; larger ones are seen in the media.
        report("S@t is \(start), before the end of the segments before it (\(next))", "§5.3.9.6.2", .harmless)
      }
      let count = repeatCount.integer ?? 0
      isEndless = count < 0
      if let length = xml.string("d").flatMap({ UInt64($0) }), length > 0 {
        let (product, tooLong) = length.multipliedReportingOverflow(by: UInt64(max(count, 0)) + 1)
        let (end, tooLate) = (start ?? next ?? 0).addingReportingOverflow(product)
        if tooLong || tooLate { report("the segments of an S end beyond 64 bits", "§5.3.9.6.2") }
        next = isEndless || tooLong || tooLate ? start : end
      } else if xml.string("d") == nil {
        report("S has no @d", "§5.3.9.6.2")
      } else if xml.string("d") == "0" {
        report("S@d is 0", "§5.3.9.6.2")
      }
      try xml.skip()
    }
  }
}

/// Checks the order of an element's children against the schema (ISO/IEC 23009-1 Annex B).
struct ElementOrder {
  /// The children of one element, in order.
  struct Sequence: Sendable {
    fileprivate let ranks: [String: Int]
    /// Children of later editions, or in any position.
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
    /// The child should have preceded this earlier one.
    case after(String)
  }

  private let sequence: Sequence
  private var highest = -1
  private var name = ""

  init(_ sequence: Sequence) { self.sequence = sequence }

  /// Returns the verdict on the next child.
  mutating func add(_ child: String) -> Verdict {
    guard let rank = sequence.ranks[child] else {
      return sequence.others.contains(child) ? .inOrder : .unknown
    }
    guard rank >= highest else { return .after(name) }
    (highest, name) = (rank, child)
    return .inOrder
  }
}
