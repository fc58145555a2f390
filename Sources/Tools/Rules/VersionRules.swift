import ReelManifest

/// Which EXT-X-VERSION a playlist needs (RFC 8216 §7, draft-pantos-hls-rfc8216bis §8).
struct VersionRules {
  private struct Need {
    var version: Int
    var what: String
    var line: Int
  }

  private var stated: Int?
  /// The first place of each thing that needs a version.
  private var needs: [Need] = []
  private var seen: Set<String> = []
  private var firstMap: Int?
  private var isIFramesOnly = false

  mutating func read(_ tag: PlaylistRules.Tag) {
    let attributes = tag.attributes
    switch tag.name {
    case "EXT-X-VERSION": stated = stated ?? Int(tag.value)
    case "EXTINF":
      let duration = tag.value.prefix { $0 != "," }
      if duration.contains(".") { need(3, "a decimal EXTINF", tag.line) }
    case "EXT-X-BYTERANGE": need(4, tag.name, tag.line)
    case "EXT-X-I-FRAMES-ONLY":
      isIFramesOnly = true
      need(4, tag.name, tag.line)
    case "EXT-X-KEY":
      if attributes["IV"] != nil { need(2, "IV of EXT-X-KEY", tag.line) }
      if attributes["KEYFORMAT"] != nil { need(5, "KEYFORMAT", tag.line) }
      if attributes["KEYFORMATVERSIONS"] != nil { need(5, "KEYFORMATVERSIONS", tag.line) }
    case "EXT-X-MAP": firstMap = firstMap ?? tag.line
    case "EXT-X-DEFINE":
      need(8, tag.name, tag.line)
      if attributes["QUERYPARAM"] != nil { need(11, "QUERYPARAM of EXT-X-DEFINE", tag.line) }
    case "EXT-X-SKIP":
      need(9, tag.name, tag.line)
      if attributes["RECENTLY-REMOVED-DATERANGES"] != nil {
        need(10, "RECENTLY-REMOVED-DATERANGES", tag.line)
      }
    case "EXT-X-MEDIA":
      guard let id = attributes.value("INSTREAM-ID") else { break }
      if attributes.value("TYPE") != "CLOSED-CAPTIONS" {
        need(13, "INSTREAM-ID of another TYPE than CLOSED-CAPTIONS", tag.line)
      } else if id.hasPrefix("SERVICE") {
        need(7, "a SERVICE as INSTREAM-ID", tag.line)
      }
    default: break
    }
    for item in attributes.items where item.name.hasPrefix("REQ-") { need(12, item.name, tag.line) }
  }

  mutating func finish(_ log: inout RuleLog) {
    if let firstMap { need(isIFramesOnly ? 5 : 6, "EXT-X-MAP", firstMap) }
    let version = stated ?? 1
    for need in needs where need.version > version {
      let has = stated.map { "the playlist states \($0)" } ?? "the playlist states none"
      log.add(
        "\(need.what.excerpt) needs an EXT-X-VERSION of \(need.version) or higher, and \(has)",
        need.version <= 7 ? .rfc("7") : .draft("8"), line: need.line)
    }
  }

  // MARK: - Private

  /// Attributes can have any name: no more kinds of needs than these are kept.
  private static let limit = 64

  private mutating func need(_ version: Int, _ what: String, _ line: Int) {
    guard seen.count < Self.limit, seen.insert(what).inserted else { return }
    needs.append(Need(version: version, what: what, line: line))
  }
}
