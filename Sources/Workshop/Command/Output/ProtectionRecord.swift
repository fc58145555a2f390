import ReelCore
import ReelManifest

/// The encryption of samples as stated in a manifest, as JSON.
struct ProtectionRecord: Encodable {
  let schemes: [String]
  let keyIds: [String]

  init(_ protection: ContentProtection) {
    schemes = protection.schemes
    keyIds = protection.keyIDs.map(\.description)
  }
}
