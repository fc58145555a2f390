import ReelCore
import ReelManifest

/// The rules of parts, and of what the server offers (draft-pantos-hls-rfc8216bis §4.4.3.7, §4.4.3.8, §4.4.4.9).
struct LowLatencyRules {
  private var partTarget: MediaTime?
  private var partInformation: Int?
  private var firstPart: Int?
  private var control: PlaylistRules.Tag?
  /// The longest part before the target is known.
  private var longest: (duration: MediaTime, line: Int)?
  /// The part before was a range of this resource.
  private var lastRange: String?

  mutating func read(_ tag: PlaylistRules.Tag, log: inout RuleLog) {
    switch tag.name {
    case "EXT-X-PART-INF":
      partInformation = partInformation ?? tag.line
      partTarget = partTarget ?? tag.attributes.seconds("PART-TARGET")
    case "EXT-X-SERVER-CONTROL":
      control = control ?? tag
      if tag.attributes["CAN-SKIP-DATERANGES"] != nil, tag.attributes["CAN-SKIP-UNTIL"] == nil {
        log.add("CAN-SKIP-DATERANGES without CAN-SKIP-UNTIL", tag.source, line: tag.line)
      }
    case "EXT-X-PART": readPart(tag, log: &log)
    default: break
    }
  }

  /// The parts that come are those of another segment.
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
        if duration > partTarget { log.add(Self.tooLong, tag.source, line: tag.line) }
      } else if duration > longest?.duration ?? .zero {
        longest = (duration, tag.line)
      }
    }
    let (reference, range) = (tag.attributes.value("URI"), tag.attributes.value("BYTERANGE"))
    if let range, !range.contains("@"), lastRange != reference {
      log.add(
        "BYTERANGE of EXT-X-PART without an offset, and the part before is no range of the same resource",
        tag.source, line: tag.line)
    }
    lastRange = range == nil ? nil : reference
  }

  private func check(
    _ name: String, of tag: PlaylistRules.Tag, atLeast factor: Int64, _ unit: MediaTime?, _ unitName: String,
    log: inout RuleLog
  ) {
    guard let unit, let value = tag.attributes.seconds(name), value < unit * factor else { return }
    log.add("\(name) is less than \(factor) times \(unitName)", tag.source, line: tag.line)
  }
}
