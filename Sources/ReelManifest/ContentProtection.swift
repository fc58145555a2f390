public import ReelCore

/// What a manifest says of the encryption of a rung's samples (ISO/IEC 23009-1 §5.8.4.1): with which keys, and who hands
/// them out. Whether a sample is encrypted, the media tells.
public struct ContentProtection: Sendable, Hashable {
  /// The kind of encryption and the systems by name, as `Common Encryption (cenc)`, `Widevine`; the scheme itself where it
  /// is not known. In the manifest's order.
  public var schemes: [String]
  /// The ids of the keys (`cenc:default_KID`, ISO/IEC 23001-7 §11.2), as far as they are stated.
  public var keyIDs: [KeyID]

  public init(schemes: [String], keyIDs: [KeyID] = []) {
    self.schemes = schemes
    self.keyIDs = keyIDs
  }

  /// The systems alone.
  public var systems: [String] { schemes.filter { !$0.hasPrefix("Common Encryption") } }
}

extension ContentProtection {
  /// Nil where there are no elements.
  init?(_ protections: [MPD.Descriptor]) {
    guard !protections.isEmpty else { return nil }
    self.init(schemes: [])
    for protection in protections.prefix(16) {
      let name = ProtectionScheme.name(forScheme: protection.scheme, value: protection.value)
      if !schemes.contains(name) { schemes.append(name.isEmpty ? "an unnamed scheme" : name) }
      for id in protection.keyIDs where !keyIDs.contains(id) { keyIDs.append(id) }
    }
  }
}

extension TrackGroup {
  /// `encrypted:` and by what, where some rung is; nil where none is.
  public var encryption: String? {
    rungs.compactMap(\.protection).first.map { "encrypted: \($0.schemes.joined(separator: ", "))" }
  }
}
