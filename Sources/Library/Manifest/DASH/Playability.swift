/// Why tracks of an MPD are not played, by their descriptors.
enum Playability {
  /// Why a client must ignore an element with these EssentialProperty elements (ISO/IEC 23009-1 §5.8.4.8); nil
  /// if it understands all of them.
  static func reason(essential properties: [MPD.Descriptor]) -> String? {
    for property in properties {
      if isTrickMode(property) { return "trick mode" }
      guard !isUnderstood(property.scheme) else { continue }
      return "an unknown essential property: \(property.scheme.excerpt)"
    }
    return nil
  }

  /// The scheme that whole segments are encrypted with (ISO/IEC 23009-4), as a reason; nil if none are. Encrypted
  /// samples are reported in `Rung.protection`.
  static func reason(protections: [MPD.Descriptor]) -> String? {
    guard protections.contains(where: { $0.scheme.lowercased() == "urn:mpeg:dash:sea:2012" }) else {
      return nil
    }
    return ContentProtection(protections).map { "encrypted: \($0.schemes.joined(separator: ", "))" }
  }

  /// True if it says that these frames are for fast forward only (DASH-IF IOP §3.2.9).
  static func isTrickMode(_ property: MPD.Descriptor) -> Bool {
    property.scheme.lowercased() == "http://dashif.org/guidelines/trickmode"
  }

  /// True if it says that these frames are tiles of thumbnails (DASH-IF IOP §6.2.6).
  static func isThumbnailTile(_ property: MPD.Descriptor) -> Bool {
    switch property.scheme.lowercased() {
    case "http://dashif.org/thumbnail_tile", "http://dashif.org/guidelines/thumbnail_tile": true
    default: false
    }
  }

  // MARK: - Private

  private static func isUnderstood(_ scheme: String) -> Bool {
    let scheme = scheme.lowercased()
    switch scheme {
    case "http://dashif.org/thumbnail_tile", "http://dashif.org/guidelines/thumbnail_tile",
      "urn:dvb:dash:fontdownload:2014":
      return true
    default:
      return scheme.hasPrefix("urn:mpeg:mpegb:cicp:")
    }
  }
}
