import ReelManifest

/// The rules of EXT-X-KEY and EXT-X-SESSION-KEY (RFC 8216 §4.3.2.4).
enum KeyRules {
  static func check(_ tag: PlaylistRules.Tag, log: inout RuleLog) {
    let attributes = tag.attributes
    if attributes.value("METHOD") == "NONE" {
      for name in ["URI", "IV", "KEYFORMAT", "KEYFORMATVERSIONS"] where attributes[name] != nil {
        log.add("\(tag.name) with METHOD=NONE has \(name)", tag.source, line: tag.line)
      }
    } else if attributes["METHOD"] != nil, attributes["URI"] == nil {
      log.add("\(tag.name) has no URI", tag.source, line: tag.line)
    }
    if let vector = attributes["IV"], !vector.isQuoted, vector.value.utf8.count > 34 {
      log.add("the IV '\(vector.value.excerpt)' has more than 128 bits", tag.source, line: tag.line)
    }
    if let versions = attributes["KEYFORMATVERSIONS"], versions.isQuoted {
      let numbers = versions.value.split(separator: "/", omittingEmptySubsequences: false)
      if !numbers.allSatisfy({ AttributeRule.isInteger(String($0)) && $0 != "0" }) {
        log.add(
          "KEYFORMATVERSIONS '\(versions.value.excerpt)' is not a list of positive integers", tag.source,
          line: tag.line)
      }
    }
  }
}
