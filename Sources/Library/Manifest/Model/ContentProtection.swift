package import ReelCore

/// The encryption of a rung's samples according to a manifest (ISO/IEC 23009-1 §5.8.4.1): the ids of the keys,
/// and the DRM systems that have them. Only the media itself states which samples are encrypted.
package struct ContentProtection: Sendable, Hashable {
  /// The names of the encryption and of the DRM systems, such as `Common Encryption (cenc)` and `Widevine`, in
  /// manifest order. For an unknown scheme, its URI.
  package var schemes: [String]
  /// The key ids that are stated (`cenc:default_KID`, ISO/IEC 23001-7 §11.2).
  package var keyIDs: [KeyID]

  package init(schemes: [String], keyIDs: [KeyID] = []) {
    self.schemes = schemes
    self.keyIDs = keyIDs
  }

  /// The DRM systems among `schemes`.
  package var systems: [String] { schemes.filter { !$0.hasPrefix("Common Encryption") } }
}

extension TrackGroup {
  /// DASH: the text `encrypted:` followed by the protection schemes of the first protected rung; nil if the manifest
  /// states no protection. Always nil for HLS, which states encryption per segment.
  public var encryption: String? {
    rungs.compactMap(\.protection).first.map { "encrypted: \($0.schemes.joined(separator: ", "))" }
  }
}
