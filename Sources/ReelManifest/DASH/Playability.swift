/// Why tracks of an MPD are not played, by their descriptors.
enum Playability {
  /// Why a client must pass over what has these EssentialProperty elements (ISO/IEC 23009-1 §5.8.4.8); nil where
  /// each of them is understood.
  static func reason(essential properties: [MPD.Descriptor]) -> String? {
    for property in properties {
      if isTrickMode(property) { return "trick mode" }
      guard !isUnderstood(property.scheme) else { continue }
      return "an essential property that is not understood: \(property.scheme.excerpt)"
    }
    return nil
  }

  /// By what it is encrypted; nil where it is not.
  static func reason(protections: [MPD.Descriptor]) -> String? {
    guard !protections.isEmpty else { return nil }
    var names: [String] = []
    for protection in protections.prefix(16) {
      let name = ProtectionScheme.name(forScheme: protection.scheme, value: protection.value)
      if !names.contains(name) { names.append(name.isEmpty ? "an unnamed scheme" : name) }
    }
    return "encrypted: \(names.joined(separator: ", "))"
  }

  /// True where it says that these pictures are for fast forward only (DASH-IF IOP §3.2.9).
  static func isTrickMode(_ property: MPD.Descriptor) -> Bool {
    property.scheme.lowercased() == "http://dashif.org/guidelines/trickmode"
  }

  /// True where it says that these pictures are tiles of thumbnails (DASH-IF IOP §6.2.6).
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
