import Foundation
import ReelCore

/// The names of the systems that protect media, by what manifests call them.
enum ProtectionScheme {
  /// The name for a KEYFORMAT of HLS; the format itself if it is unknown.
  static func name(forKeyFormat format: String) -> String {
    switch format.lowercased() {
    case "com.apple.streamingkeydelivery": return "FairPlay"
    case "com.microsoft.playready": return "PlayReady"
    case "com.widevine", "com.widevine.alpha": return "Widevine"
    case let lowercased: return systemName(lowercased) ?? format.excerpt
    }
  }

  /// The name for the scheme of a ContentProtection element (ISO/IEC 23009-1 §5.8.4.1): a DRM system, or the
  /// kind of encryption. The scheme itself if it is unknown.
  static func name(forScheme scheme: String, value: String?) -> String {
    let lowercased = scheme.lowercased()
    if lowercased == "urn:mpeg:dash:mp4protection:2011" {
      return value.map { "Common Encryption (\($0.excerpt))" } ?? "Common Encryption"
    }
    if lowercased == "urn:mpeg:dash:sea:2012" { return "Segment Encryption" }
    return systemName(lowercased) ?? scheme.excerpt
  }

  // MARK: - Private

  private static func systemName(_ identifier: String) -> String? {
    guard identifier.hasPrefix("urn:uuid:") else { return nil }
    return ProtectionSystem.name(ofID: identifier.dropFirst(9))
  }
}
