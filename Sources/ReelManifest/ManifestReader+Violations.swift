package import Foundation
package import ReelCore

extension ManifestReader {
  /// What is wrong with a manifest by the letter of its standard, in the order in which it stands there, no more than
  /// `limits.warnings`; nothing for a manifest by the book. Each has its line or element and names the clause.
  ///
  /// DASH: ISO/IEC 23009-1. HLS: RFC 8216 and draft-pantos-hls-rfc8216bis, for a multivariant playlist and for a media playlist. What stands
  /// in another file, as the variables that a media playlist imports, is not looked at. Much of it does not keep
  /// `presentation(from:format:url:)` from reading the manifest; all that does is in the list.
  package func violations(in bytes: [UInt8], format: ManifestFormat, url: URL) -> [ReelError] {
    let violations =
      switch format {
      case .hls: PlaylistRules.violations(in: bytes, url: url, limits: limits)
      case .dash: MPDRules.violations(in: bytes, url: url, limits: limits)
      }
    return violations.map { $0.located(at: url.manifestLocation) }
  }
}
