import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import ReelRules
import Testing

/// What is wrong with a playlist.
func hlsViolations(_ text: String, limits: ManifestLimits = ManifestLimits()) -> [ReelError] {
  RuleChecker(limits: limits).violations(in: Array(text.utf8), format: .hls, url: manifestURL).map(\.error)
}

/// Checks that a playlist has this violation, and no other.
func expectHLSViolation(
  _ text: String, line: Int, _ reason: String, sourceLocation: SourceLocation = #_sourceLocation
) {
  let found = hlsViolations(text)
  #expect(found.count == 1, "\(found.map(\.description))", sourceLocation: sourceLocation)
  #expect(
    found.first?.reason.contains(reason) == true, "\(found.map(\.description))",
    sourceLocation: sourceLocation)
  #expect(found.first?.place == .line(line), "\(found.map(\.description))", sourceLocation: sourceLocation)
  #expect(found.first?.location == manifestURL.absoluteString, sourceLocation: sourceLocation)
}
