import Foundation
import ReelCore
import ReelManifest

/// Finds violations of ISO/IEC 23009-1 in an MPD, whether it can be played or not.
///
/// It is a separate pass over the text, because the reader of the model ignores what players ignore.
struct MPDRules {
  var xml: XMLReader
  /// The prefix of the root element: elements with another one are not the standard's.
  var ownPrefix = ""
  /// The namespace that the root element binds: those that bind another one are not the standard's.
  var ownNamespace = MPDRules.namespace

  /// The violations in `bytes`, in order, each with line and column or the path of the element, and with the
  /// violated clause; at most `limits.warnings`. If the text is not XML or exceeds the limits, the last one is
  /// the error that ended reading.
  static func violations(in bytes: [UInt8], url: URL, limits: ManifestLimits) -> [ReelError] {
    var rules = MPDRules(xml: XMLReader(bytes, limits: limits))
    do throws(ReelError) {
      try limits.check(bytes)
      try rules.check()
    } catch {
      rules.xml.warnings.add(error)
    }
    return rules.xml.warnings.warnings.map { $0.located(at: url.manifestLocation) }
  }

  // MARK: - For what it is made of

  /// A violation at the start tag that was read last.
  mutating func report(_ reason: String, _ clause: String) {
    xml.warn("\(reason) (ISO/IEC 23009-1 \(clause))")
  }

  /// A violation of an element that has been read to its end.
  mutating func report(_ reason: String, _ clause: String, path: String) {
    xml.warnings.add("\(reason) (ISO/IEC 23009-1 \(clause))", place: .element(path))
  }

  /// True if the last start tag belongs to the standard's namespace, according to its prefix.
  var isOwn: Bool { xml.prefix == ownPrefix && (xml.namespace ?? ownNamespace) == ownNamespace }

  static let namespace = "urn:mpeg:dash:schema:mpd:2011"

  // MARK: - Private

  private mutating func check() throws(ReelError) {
    try xml.root()
    guard xml.name == "MPD" else { throw xml.error("not an MPD: its root element is <\(xml.name.excerpt)>") }
    ownPrefix = xml.prefix
    if let namespace = xml.namespace {
      if namespace != Self.namespace {
        // The descendants have the same namespace, so report it once.
        report("the namespace is '\(namespace.excerpt)', not '\(Self.namespace)'", "Annex B")
        ownNamespace = namespace
      }
    } else {
      report("the namespace '\(Self.namespace)' is missing", "Annex B")
    }
    let presentation = attributes()
    var order = ElementOrder(.mpd)
    var periods = PeriodState(isDynamic: presentation.isDynamic)
    while let child = try nextChild(of: "MPD", &order) {
      switch child {
      case "Period": try period(&periods)
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

  /// The attributes of the MPD element.
  private mutating func attributes() -> Attributes {
    let type = xml.string("type")
    if let type, type != "static", type != "dynamic" {
      report("@type '\(type.excerpt)' is neither static nor dynamic", "§5.3.1.2")
    }
    let isDynamic = type == "dynamic"
    if (xml.string("profiles") ?? "").isEmpty { report("@profiles is missing", "§5.3.1.2") }
    if xml.string("minBufferTime") == nil { report("@minBufferTime is missing", "§5.3.1.2") }
    for name: StaticString in ["availabilityStartTime", "availabilityEndTime", "publishTime"] { date(name) }
    for name: StaticString in [
      "mediaPresentationDuration", "minimumUpdatePeriod", "minBufferTime", "timeShiftBufferDepth",
      "suggestedPresentationDelay", "maxSegmentDuration", "maxSubsegmentDuration",
    ] {
      duration(name, "§5.3.1.2")
    }
    if isDynamic {
      for name: StaticString in ["availabilityStartTime", "publishTime"] where xml.string(name) == nil {
        report("@\(name) is missing, @type being dynamic", "§5.3.1.2")
      }
    } else {
      for name: StaticString in ["minimumUpdatePeriod", "timeShiftBufferDepth", "suggestedPresentationDelay"]
      where xml.string(name) != nil {
        report("@\(name) is there, @type being static", "§5.3.1.2")
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
  /// An attribute that has to be an `xs:duration`.
  mutating func duration(_ name: StaticString, _ clause: String) {
    guard let text = xml.string(name) else { return }
    if XMLDuration(text)?.isWellFormed != true {
      report("@\(name) '\(text.excerpt)' is not an xs:duration of 0 or more", clause)
    }
  }

  /// An attribute that has to be an `xs:dateTime`.
  mutating func date(_ name: StaticString) {
    guard let text = xml.string(name) else { return }
    if !text.contains("T") || WallTime(iso8601: text) == nil {
      report("@\(name) '\(text.excerpt)' is not an xs:dateTime", "§5.3.1.2")
    }
  }

  /// Attributes that have to be whole numbers from 0 on.
  mutating func naturals(_ names: [StaticString], _ clause: String) {
    for name in names {
      guard let text = xml.string(name) else { continue }
      if UInt64(text) == nil {
        report("@\(name) '\(text.excerpt)' is not a whole number of 0 or more", clause)
      }
    }
  }

  /// Checks an attribute that must be a whole number.
  mutating func integer(_ name: StaticString, _ clause: String) {
    guard let text = xml.string(name), text.integer == nil else { return }
    report("@\(name) '\(text.excerpt)' is not a whole number", clause)
  }

  /// Checks an attribute of another format with `isValid`.
  mutating func form(_ name: StaticString, _ what: String, _ clause: String, _ isValid: (String) -> Bool) {
    guard let text = xml.string(name), !isValid(text) else { return }
    report("@\(name) '\(text.excerpt)' is not \(what)", clause)
  }

  /// Attributes that have to be byte ranges.
  mutating func ranges(_ names: [StaticString], _ clause: String) {
    for name in names {
      do throws(ReelError) {
        _ = try xml.byteRange(name)
      } catch {
        report(error.reason, clause)
      }
    }
  }

  /// A descriptor, which is consumed (§5.8.2).
  mutating func descriptor(_ name: String) throws(ReelError) {
    let isReference = name == "ContentProtection" && xml.string("ref") != nil
    if (xml.string("schemeIdUri") ?? "").isEmpty, !isReference {
      report("\(name) has no @schemeIdUri", "§5.8.2")
    }
    try xml.skip()
  }

  /// The next child that belongs to the standard's namespace, after a check of its position among its siblings.
  mutating func nextChild(of parent: String, _ order: inout ElementOrder) throws(ReelError) -> String? {
    while let child = try xml.nextChild() {
      guard isOwn else {
        try xml.skip()
        continue
      }
      switch order.add(child) {
      case .inOrder: break
      case .unknown: report("<\(child.excerpt)> is not an element of \(parent)", "Annex B")
      case .after(let other): report("\(child) stands after \(other), which has to follow it", "Annex B")
      }
      return child
    }
    return nil
  }
}
