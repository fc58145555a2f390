import Foundation
import ReelCore
import ReelManifest

/// The rules of a media playlist: its segments and the tags that apply to all of them (RFC 8216 §4.3.2,
/// §4.3.3).
struct MediaPlaylistRules {
  private var lowLatency = LowLatencyRules()
  private var dates = DateRangeRules()

  // State for the next segment: the lines of tags that apply to it.
  private var duration: Int?
  private var byteRange: (text: ByteRangeText, line: Int)?
  private var gap: Int?

  private var hasSegments = false
  private var hasDiscontinuity = false
  /// The resource of which the previous segment was a range.
  private var lastRange: String?
  private var endList: Int?
  private var hasMap = false
  private var isMapMissing = false
  private var hasSkip = false

  private var targetDuration: Int64?
  /// The segments that may be too long: each is longer than all previous ones, until the target is known.
  private var longest: (seconds: Int64, text: String, line: Int)?
  private var hasTargetDuration = false

  mutating func read(_ tag: PlaylistRules.Tag, log: inout RuleLog) {
    switch tag.name {
    case "EXTINF": readDuration(tag, log: &log)
    case "EXT-X-BYTERANGE": readByteRange(tag, log: &log)
    case "EXT-X-GAP":
      if gap != nil { log.add("EXT-X-GAP twice for one segment", tag) }
      gap = tag.line
    case "EXT-X-DISCONTINUITY": hasDiscontinuity = true
    case "EXT-X-KEY": KeyRules.check(tag, log: &log)
    case "EXT-X-MAP": hasMap = true
    case "EXT-X-PROGRAM-DATE-TIME": dates.readDate(tag, log: &log)
    case "EXT-X-DATERANGE": dates.readRange(tag, log: &log)
    case "EXT-X-TARGETDURATION":
      hasTargetDuration = true
      targetDuration = targetDuration ?? tag.value.integer
    case "EXT-X-MEDIA-SEQUENCE":
      if hasSegments { log.add("\(tag.name) after the first segment", tag) }
    case "EXT-X-DISCONTINUITY-SEQUENCE":
      if hasSegments || hasDiscontinuity {
        let what = hasSegments ? "the first segment" : "an EXT-X-DISCONTINUITY"
        log.add("\(tag.name) after \(what)", tag)
      }
    case "EXT-X-ENDLIST": endList = hasSegments ? tag.line : nil
    case "EXT-X-PLAYLIST-TYPE":
      if !["VOD", "EVENT"].contains(tag.value) {
        log.add("EXT-X-PLAYLIST-TYPE '\(tag.value.excerpt)' is neither VOD nor EVENT", tag)
      }
    case "EXT-X-SKIP":
      hasSkip = true
      if hasSegments { log.add("EXT-X-SKIP after a segment", tag) }
    default: break
    }
    lowLatency.read(tag, log: &log)
  }

  /// Checks a line that is a URI.
  mutating func addReference(_ text: String, line: Int, log: inout RuleLog) {
    if duration == nil { log.add("a URI without an EXTINF before it", .rfc("4.3.2.1"), line: line) }
    if endList != nil {
      log.add("a segment after EXT-X-ENDLIST, after which there are no more", .rfc("4.3.3.4"), line: line)
    }
    if let byteRange, byteRange.text.offset == nil, lastRange != text, hasSegments || !hasSkip {
      log.add(
        "EXT-X-BYTERANGE without an offset, and the segment before is no range of the same resource",
        .rfc("4.3.2.2"), line: byteRange.line)
    }
    if !hasMap, !hasSkip, !isMapMissing, Self.isFragmentedMP4(text) {
      isMapMissing = true
      log.add(
        "a segment of fragmented MP4 without an EXT-X-MAP before it", .rfc("3.3"), line: line, .harmlessIfRead
      )
    }
    lastRange = byteRange == nil ? nil : text
    hasSegments = true
    lowLatency.endSegment()
    (duration, byteRange, gap) = (nil, nil, nil)
  }

  mutating func finish(_ log: inout RuleLog, lastLine: Int) {
    if let duration { log.add("EXTINF without a URI after it", .rfc("4.3.2.1"), line: duration) }
    if let byteRange {
      log.add("EXT-X-BYTERANGE without a segment after it", .rfc("4.3.2.2"), line: byteRange.line)
    }
    if !hasTargetDuration { log.add("there is no EXT-X-TARGETDURATION", .rfc("4.3.3.1"), line: lastLine) }
    if let longest, let targetDuration, longest.seconds > targetDuration {
      addTooLong(longest.text, line: longest.line, target: targetDuration, log: &log)
    }
    lowLatency.finish(&log, targetDuration: targetDuration)
    dates.finish(&log, hasSkip: hasSkip)
  }

  // MARK: - Private

  private mutating func readDuration(_ tag: PlaylistRules.Tag, log: inout RuleLog) {
    if let duration { log.add("EXTINF without a URI after it", tag.source, line: duration) }
    duration = tag.line
    let comma = tag.value.firstIndex(of: ",")
    if comma == nil {
      log.add("no comma after the duration of EXTINF", tag, .harmless)
    }
    let text = String(tag.value[..<(comma ?? tag.value.endIndex)])
    guard AttributeRule.isFloat(text) else {
      log.add("the duration '\(text.excerpt)' of EXTINF is not a decimal number of 0 or more", tag)
      return
    }
    let digits = Array(text.utf8)
    guard let (value, _) = ExactSeconds.parse(digits, in: 0..<digits.count) else {
      log.add("the duration '\(text.excerpt)' of EXTINF is beyond 292 years", tag)
      return
    }
    let (whole, rest) = value.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    let rounded = rest >= 500_000_000 ? whole + 1 : whole
    if let targetDuration {
      if rounded > targetDuration { addTooLong(text, line: tag.line, target: targetDuration, log: &log) }
    } else if rounded > longest?.seconds ?? -1 {
      longest = (rounded, text, tag.line)
    }
  }

  private func addTooLong(_ text: String, line: Int, target: Int64, log: inout RuleLog) {
    log.add(
      "EXTINF \(text.excerpt) rounds to more than EXT-X-TARGETDURATION \(target)", .rfc("4.3.3.1"), line: line
    )
  }

  private mutating func readByteRange(_ tag: PlaylistRules.Tag, log: inout RuleLog) {
    if let byteRange {
      log.add("EXT-X-BYTERANGE twice for one segment", tag.source, line: byteRange.line)
    }
    let parts = tag.value.split(separator: "@", omittingEmptySubsequences: false)
    guard let text = ByteRangeText(tag.value), parts.allSatisfy({ AttributeRule.isInteger(String($0)) })
    else {
      log.add("'\(tag.value.excerpt)' is not a byte range of the form length@offset", tag)
      return
    }
    byteRange = (text, tag.line)
  }

  /// Returns true if the name of the resource leaves no doubt.
  private static func isFragmentedMP4(_ reference: String) -> Bool {
    let path = reference.prefix { $0 != "?" && $0 != "#" }
    let name = path.split(separator: "/").last ?? ""
    guard let dot = name.lastIndex(of: ".") else { return false }
    let suffix = name[name.index(after: dot)...].lowercased()
    return ["m4s", "mp4", "m4v", "cmfv", "cmfa", "cmft"].contains(suffix)
  }
}

/// The rules of parts, and of the features that the server offers (draft-pantos-hls-rfc8216bis §4.4.3.7,
/// §4.4.3.8, §4.4.4.9).
struct LowLatencyRules {
  private var partTarget: MediaTime?
  private var partInformation: Int?
  private var firstPart: Int?
  private var control: PlaylistRules.Tag?
  /// The longest part before the target is known.
  private var longest: (duration: MediaTime, line: Int)?
  /// The resource of which the previous part was a range.
  private var lastRange: String?

  mutating func read(_ tag: PlaylistRules.Tag, log: inout RuleLog) {
    switch tag.name {
    case "EXT-X-PART-INF":
      partInformation = partInformation ?? tag.line
      partTarget = partTarget ?? tag.attributes.seconds("PART-TARGET")
    case "EXT-X-SERVER-CONTROL":
      control = control ?? tag
      if tag.attributes["CAN-SKIP-DATERANGES"] != nil, tag.attributes["CAN-SKIP-UNTIL"] == nil {
        log.add("CAN-SKIP-DATERANGES without CAN-SKIP-UNTIL", tag, .harmless)
      }
    case "EXT-X-PART": readPart(tag, log: &log)
    default: break
    }
  }

  /// Ends the segment: the following parts belong to another one.
  mutating func endSegment() { lastRange = nil }

  func finish(_ log: inout RuleLog, targetDuration: Int64?) {
    if let firstPart, partInformation == nil {
      log.add("EXT-X-PART in a playlist without EXT-X-PART-INF", .draft("4.4.3.7"), line: firstPart)
    }
    if let longest, let partTarget, longest.duration > partTarget {
      log.add(Self.tooLong, .draft("4.4.4.9"), line: longest.line)
    }
    if let partInformation, control?.attributes["PART-HOLD-BACK"] == nil {
      log.add(
        "EXT-X-PART-INF in a playlist without PART-HOLD-BACK in EXT-X-SERVER-CONTROL", .draft("4.4.3.8"),
        line: partInformation)
    }
    guard let control else { return }
    let target = targetDuration.map { MediaTime(value: $0, timescale: 1) }
    check("CAN-SKIP-UNTIL", of: control, atLeast: 6, target, "EXT-X-TARGETDURATION", log: &log)
    check("HOLD-BACK", of: control, atLeast: 3, target, "EXT-X-TARGETDURATION", log: &log)
    check("PART-HOLD-BACK", of: control, atLeast: 2, partTarget, "PART-TARGET", log: &log)
  }

  // MARK: - Private

  private static let tooLong = "the DURATION of EXT-X-PART is more than PART-TARGET"

  private mutating func readPart(_ tag: PlaylistRules.Tag, log: inout RuleLog) {
    firstPart = firstPart ?? tag.line
    if let duration = tag.attributes.seconds("DURATION") {
      if let partTarget {
        if duration > partTarget { log.add(Self.tooLong, tag) }
      } else if duration > longest?.duration ?? .zero {
        longest = (duration, tag.line)
      }
    }
    let (reference, range) = (tag.attributes.value("URI"), tag.attributes.value("BYTERANGE"))
    if let range, !range.contains("@"), lastRange != reference {
      log.add(
        "BYTERANGE of EXT-X-PART without an offset, and the part before is no range of the same resource",
        tag)
    }
    lastRange = range == nil ? nil : reference
  }

  private func check(
    _ name: String, of tag: PlaylistRules.Tag, atLeast factor: Int64, _ unit: MediaTime?, _ unitName: String,
    log: inout RuleLog
  ) {
    guard let unit, let value = tag.attributes.seconds(name), value < unit * factor else { return }
    log.add("\(name) is less than \(factor) times \(unitName)", tag)
  }
}
