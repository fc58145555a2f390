package import Foundation
package import ReelManifest

/// Finds the violations of its standard in a manifest.
///
/// DASH: ISO/IEC 23009-1. HLS: RFC 8216 and draft-pantos-hls-rfc8216bis, for multivariant playlists and for
/// media playlists. The content of other files, such as variables that a media playlist imports, is not
/// checked.
package struct RuleChecker: Sendable {
  package let limits: ManifestLimits

  package init(limits: ManifestLimits = ManifestLimits()) { self.limits = limits }

  /// Returns the violations, in order, at most `limits.warnings`; empty for a valid manifest. Each has its
  /// line or element and names the clause.
  ///
  /// Despite many violations, `ManifestReader` can still read the manifest. All violations that prevent
  /// reading are in the list.
  package func violations(in bytes: [UInt8], format: ManifestFormat, url: URL) -> [RuleViolation] {
    let violations =
      switch format {
      case .hls: PlaylistRules.violations(in: bytes, url: url, limits: limits)
      case .dash: MPDRules.violations(in: bytes, url: url, limits: limits)
      }
    return violations.map { $0.located(at: url.manifestLocation) }
  }
}
