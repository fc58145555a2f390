import Foundation

/// The names of the systems that protect media, by what manifests call them.
enum ProtectionScheme {
  /// The name for a KEYFORMAT of HLS; the format itself where it is not known.
  static func name(forKeyFormat format: String) -> String {
    switch format.lowercased() {
    case "com.apple.streamingkeydelivery": return "FairPlay"
    case "com.microsoft.playready": return "PlayReady"
    case "com.widevine", "com.widevine.alpha": return "Widevine"
    case let lowercased: return systemName(lowercased) ?? format.excerpt
    }
  }

  /// The name for the scheme of a ContentProtection element (ISO/IEC 23009-1 §5.8.4.1): a DRM system, or the kind
  /// of encryption. The scheme itself where it is not known.
  static func name(forScheme scheme: String, value: String?) -> String {
    let lowercased = scheme.lowercased()
    if lowercased == "urn:mpeg:dash:mp4protection:2011" {
      return value.map { "Common Encryption (\($0.excerpt))" } ?? "Common Encryption"
    }
    if lowercased == "urn:mpeg:dash:sea:2012" { return "Segment Encryption" }
    return systemName(lowercased) ?? scheme.excerpt
  }

  // MARK: - Private

  /// System IDs as the DASH-IF registers them.
  private static func systemName(_ identifier: String) -> String? {
    guard identifier.hasPrefix("urn:uuid:") else { return nil }
    switch identifier.dropFirst(9) {
    case "edef8ba9-79d6-4ace-a3c8-27dcd51d21ed": return "Widevine"
    case "9a04f079-9840-4286-ab92-e65be0885f95", "79f0049a-4098-8642-ab92-e65be0885f95": return "PlayReady"
    case "94ce86fb-07ff-4f43-adb8-93d2fa968ca2": return "FairPlay"
    case "e2719d58-a985-b3c9-781a-b030af78d30e", "1077efec-c0b2-4d02-ace3-3c1e52e2fb4b": return "ClearKey"
    case "5e629af5-38da-4063-8977-97ffbd9902d4": return "Marlin"
    case "f239e769-efa3-4850-9c16-a903c6932efb": return "Primetime"
    case "adb41c24-2dbf-4a6d-958b-4457c0d27b95": return "Nagra"
    case "3d5e6d35-9b9a-41e8-b843-dd3c6e72c42c": return "ChinaDRM"
    default: return nil
    }
  }
}
