import ReelManifest

/// The rules of a multivariant playlist: variants, renditions and the groups that connect them (RFC 8216
/// §4.3.4).
struct MultivariantPlaylistRules {
  private struct Group: Hashable {
    var type: String
    var id: String
  }

  private struct GroupUse {
    var group: Group
    var line: Int
    var source: RuleSource
  }

  private var groups: [Group: (names: Set<String>, hasDefault: Bool)] = [:]
  private var uses: [GroupUse] = []
  private var pending: Int?
  private var withoutCaptions: Int?
  private var withCaptions: Int?
  private var sessionData: Set<[String]> = []
  private var sessionKeys: Set<[String]> = []

  mutating func read(_ tag: PlaylistRules.Tag, log: inout RuleLog) {
    if let pending {
      log.add("EXT-X-STREAM-INF without a URI in the next line", .rfc("4.3.4.2"), line: pending, .loss)
    }
    pending = nil
    switch tag.name {
    case "EXT-X-MEDIA": readRendition(tag, log: &log)
    case "EXT-X-STREAM-INF": readVariant(tag)
    case "EXT-X-I-FRAME-STREAM-INF": addUse("VIDEO", of: tag)
    case "EXT-X-SESSION-DATA": readSessionData(tag, log: &log)
    case "EXT-X-SESSION-KEY": readSessionKey(tag, log: &log)
    default: break
    }
  }

  /// Checks a line that is a URI.
  mutating func addReference(line: Int, log: inout RuleLog) {
    if pending == nil { log.add("a URI without an EXT-X-STREAM-INF before it", .rfc("4.3.4.2"), line: line) }
    pending = nil
  }

  mutating func finish(_ log: inout RuleLog) {
    if let pending {
      log.add("EXT-X-STREAM-INF without a URI after it", .rfc("4.3.4.2"), line: pending, .loss)
    }
    for use in uses where groups[use.group] == nil {
      log.add(
        "\(use.group.type) names the group '\(use.group.id.excerpt)', which no EXT-X-MEDIA of that TYPE has",
        use.source, line: use.line)
    }
    if let withCaptions, let withoutCaptions {
      log.add(
        "CLOSED-CAPTIONS is NONE in some EXT-X-STREAM-INF and not in others", .rfc("4.3.4.2"),
        line: max(withCaptions, withoutCaptions), .harmless)
    }
  }

  // MARK: - Private

  private mutating func readVariant(_ tag: PlaylistRules.Tag) {
    pending = tag.line
    for type in ["AUDIO", "VIDEO", "SUBTITLES"] { addUse(type, of: tag) }
    let captions = tag.attributes["CLOSED-CAPTIONS"]
    if let captions, !captions.isQuoted, captions.value == "NONE" {
      withoutCaptions = withoutCaptions ?? tag.line
    } else {
      withCaptions = withCaptions ?? tag.line
      addUse("CLOSED-CAPTIONS", of: tag)
    }
  }

  private mutating func addUse(_ type: String, of tag: PlaylistRules.Tag) {
    guard let item = tag.attributes[type], item.isQuoted, !item.value.contains("{$") else { return }
    uses.append(GroupUse(group: Group(type: type, id: item.value), line: tag.line, source: tag.source))
  }

  private mutating func readRendition(_ tag: PlaylistRules.Tag, log: inout RuleLog) {
    let attributes = tag.attributes
    let type = attributes.value("TYPE") ?? ""
    checkRendition(tag, type: type, log: &log)
    guard let id = attributes.value("GROUP-ID") else { return }
    let group = Group(type: type, id: id)
    var members = groups[group] ?? ([], false)
    if let name = attributes.value("NAME"), !members.names.insert(name).inserted {
      log.add(
        "the NAME '\(name.excerpt)' twice in the group '\(id.excerpt)'", .rfc("4.3.4.1.1"), line: tag.line)
    }
    if attributes.value("DEFAULT") == "YES" {
      if members.hasDefault {
        log.add("a second DEFAULT=YES in the group '\(id.excerpt)'", .rfc("4.3.4.1.1"), line: tag.line)
      }
      members.hasDefault = true
    }
    groups[group] = members
  }

  private func checkRendition(_ tag: PlaylistRules.Tag, type: String, log: inout RuleLog) {
    let attributes = tag.attributes
    func add(_ reason: String, _ effect: RuleViolation.Effect = .risk) {
      log.add(reason, tag, effect)
    }
    if attributes.value("DEFAULT") == "YES", attributes.value("AUTOSELECT") == "NO" {
      add("EXT-X-MEDIA with DEFAULT=YES has AUTOSELECT=NO", .harmless)
    }
    if type == "SUBTITLES", attributes["URI"] == nil { add("EXT-X-MEDIA of the TYPE SUBTITLES has no URI") }
    if type != "SUBTITLES", attributes["FORCED"] != nil {
      add("FORCED in EXT-X-MEDIA of the TYPE \(type.excerpt)", .harmless)
    }
    if type == "CLOSED-CAPTIONS" {
      if attributes["URI"] != nil { add("EXT-X-MEDIA of the TYPE CLOSED-CAPTIONS has a URI") }
      if let id = attributes.value("INSTREAM-ID") {
        if !Self.isCaptionChannel(id) {
          add("INSTREAM-ID '\(id.excerpt)' is neither CC1 to CC4 nor SERVICE1 to SERVICE63")
        }
      } else {
        add("EXT-X-MEDIA of the TYPE CLOSED-CAPTIONS has no INSTREAM-ID")
      }
    }
  }

  private static func isCaptionChannel(_ id: String) -> Bool {
    if ["CC1", "CC2", "CC3", "CC4"].contains(id) { return true }
    guard id.hasPrefix("SERVICE"), let number = Int(id.dropFirst(7)) else { return false }
    return (1...63).contains(number) && id == "SERVICE\(number)"
  }

  private mutating func readSessionData(_ tag: PlaylistRules.Tag, log: inout RuleLog) {
    let attributes = tag.attributes
    if (attributes["VALUE"] == nil) == (attributes["URI"] == nil) {
      let which = attributes["URI"] == nil ? "neither VALUE nor URI" : "both VALUE and URI"
      log.add("EXT-X-SESSION-DATA has \(which)", tag)
    }
    guard let id = attributes.value("DATA-ID") else { return }
    if !sessionData.insert([id, attributes.value("LANGUAGE") ?? ""]).inserted {
      log.add("a second EXT-X-SESSION-DATA of the DATA-ID '\(id.excerpt)' and the same LANGUAGE", tag)
    }
  }

  private mutating func readSessionKey(_ tag: PlaylistRules.Tag, log: inout RuleLog) {
    KeyRules.check(tag, log: &log)
    if tag.attributes.value("METHOD") == "NONE" {
      log.add("EXT-X-SESSION-KEY with METHOD=NONE", tag)
    }
    let key = ["METHOD", "URI", "IV", "KEYFORMAT", "KEYFORMATVERSIONS"].map { tag.attributes.value($0) ?? "" }
    if !sessionKeys.insert(key).inserted {
      log.add("the same EXT-X-SESSION-KEY twice", tag)
    }
  }
}
