/// DRM systems by the ids registered with the DASH Industry Forum.
package enum ProtectionSystem {
  /// The name of the system with this id, or nil if it is not known. The id has 32 hexadecimal digits in upper or
  /// lower case, with or without dashes.
  package static func name(ofID identifier: some StringProtocol) -> String? {
    switch identifier.lowercased().filter({ $0 != "-" }) {
    case "edef8ba979d64acea3c827dcd51d21ed": "Widevine"
    case "9a04f07998404286ab92e65be0885f95", "79f0049a40988642ab92e65be0885f95": "PlayReady"
    case "94ce86fb07ff4f43adb893d2fa968ca2": "FairPlay"
    case "e2719d58a985b3c9781ab030af78d30e", "1077efecc0b24d02ace33c1e52e2fb4b": "ClearKey"
    case "5e629af538da4063897797ffbd9902d4": "Marlin"
    case "f239e769efa348509c16a903c6932efb": "Primetime"
    case "adb41c242dbf4a6d958b4457c0d27b95": "Nagra"
    case "3d5e6d359b9a41e8b843dd3c6e72c42c": "ChinaDRM"
    default: nil
    }
  }
}
