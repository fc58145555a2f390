package import ReelCore

/// The encryption of a rung's samples according to a manifest (ISO/IEC 23009-1 §5.8.4.1): the ids of the keys,
/// and the DRM systems that have them. Only the media itself states which samples are encrypted.
package struct ContentProtection: Sendable, Hashable {
  /// The names of the encryption and of the DRM systems, such as `Common Encryption (cenc)` and `Widevine`, in
  /// manifest order. For an unknown scheme, its URI.
  package var schemes: [String]
  /// The key ids that are stated (`cenc:default_KID`, ISO/IEC 23001-7 §11.2).
  package var keyIDs: [KeyID]
  /// The scheme of Common Encryption in lower case, such as `cenc`; nil if the manifest states none.
  package var commonEncryption: String?
  /// The DRM systems with a registered id, in manifest order.
  package var systems: [System] = []

  package init(schemes: [String], keyIDs: [KeyID] = []) {
    self.schemes = schemes
    self.keyIDs = keyIDs
  }

  /// The DRM systems among `schemes`.
  package var systemNames: [String] { schemes.filter { !$0.hasPrefix("Common Encryption") } }

  /// A DRM system, and the data by which it finds the keys.
  package struct System: Sendable, Hashable {
    /// The registered id: 32 hexadecimal digits in lower case, without dashes.
    package var id: String
    /// The whole `pssh` boxes (`cenc:pssh`, ISO/IEC 23001-7 §11.2).
    package var systemData: [[UInt8]] = []
    /// PlayReady: the PlayReady Object (`mspr:pro`).
    package var playReadyObject: [UInt8]?
    /// FairPlay: the `skd:` URI of the key.
    package var keyURI: String?

    /// The system; nil if its id is not known.
    package var system: ProtectionSystem? { ProtectionSystem(id: id) }
  }
}

extension ContentProtection {
  /// Nil if there are no elements.
  init?(_ protections: [MPD.Protection]) {
    guard !protections.isEmpty else { return nil }
    self.init(schemes: [])
    for protection in protections.prefix(16) {
      let name = Self.name(of: protection)
      if !schemes.contains(name) { schemes.append(name.isEmpty ? "an unnamed scheme" : name) }
      for id in protection.keyIDs where !keyIDs.contains(id) { keyIDs.append(id) }
      if protection.scheme.lowercased() == Self.commonEncryptionScheme {
        let scheme = protection.value?.lowercased()
        commonEncryption = commonEncryption ?? (scheme == "" ? nil : scheme)
      }
      addSystems(of: protection)
    }
  }

  // MARK: - Private

  private static let commonEncryptionScheme = "urn:mpeg:dash:mp4protection:2011"

  /// Returns the name of a DRM system or of the kind of encryption; the scheme itself if it is unknown.
  private static func name(of protection: MPD.Protection) -> String {
    switch protection.scheme.lowercased() {
    case commonEncryptionScheme:
      return protection.value.map { "Common Encryption (\($0.excerpt))" } ?? "Common Encryption"
    case "urn:mpeg:dash:sea:2012": return "Segment Encryption"
    case let scheme: return ProtectionSystem(scheme: scheme)?.name ?? protection.scheme.excerpt
    }
  }

  /// Adds the system that the element is for or, if it is for none, those of its `pssh` boxes.
  private mutating func addSystems(of protection: MPD.Protection) {
    guard let id = ProtectionSystem.id(ofScheme: protection.scheme) else {
      for box in protection.systemData {
        changeSystem(box[12..<28].hexadecimal) { $0.systemData.append(box) }
      }
      return
    }
    changeSystem(id) { system in
      system.systemData += protection.systemData
      system.playReadyObject = system.playReadyObject ?? protection.playReadyObject
      system.keyURI = system.keyURI ?? protection.keyURI
    }
  }

  private mutating func changeSystem(_ id: String, _ change: (inout System) -> Void) {
    if let index = systems.firstIndex(where: { $0.id == id }) {
      change(&systems[index])
    } else {
      var system = System(id: id)
      change(&system)
      systems.append(system)
    }
  }
}

extension ProtectionSystem {
  /// Returns the system of a KEYFORMAT of HLS, or nil if it is not known.
  package init?(keyFormat: String) {
    switch keyFormat.lowercased() {
    case "com.apple.streamingkeydelivery": self = .fairPlay
    case "com.microsoft.playready": self = .playReady
    case "com.widevine", "com.widevine.alpha": self = .widevine
    case let scheme: self.init(scheme: scheme)
    }
  }

  /// Returns the system of a URN such as `urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed`, or nil if it is not known.
  fileprivate init?(scheme: String) {
    guard let id = Self.id(ofScheme: scheme) else { return nil }
    self.init(id: id)
  }

  /// Returns the id in a `urn:uuid:`, in lower case without dashes; nil for another scheme.
  static func id(ofScheme scheme: String) -> String? {
    let scheme = scheme.lowercased()
    guard scheme.hasPrefix("urn:uuid:") else { return nil }
    return scheme.dropFirst(9).filter { $0 != "-" }
  }
}

extension TrackGroup {
  /// DASH: the text `encrypted:` followed by the protection schemes of the first protected rung; nil if the manifest
  /// states no protection. Always nil for HLS, which states encryption per segment.
  public var encryption: String? {
    rungs.compactMap(\.protection).first.map { "encrypted: \($0.schemes.joined(separator: ", "))" }
  }
}
