import ReelCore
import ReelManifest

/// What a manifest says of the encryption of samples, as JSON.
struct ProtectionRecord: Encodable {
  let schemes: [String]
  let keyIds: [String]

  init(_ protection: ContentProtection) {
    schemes = protection.schemes
    keyIds = protection.keyIDs.map(\.description)
  }
}
