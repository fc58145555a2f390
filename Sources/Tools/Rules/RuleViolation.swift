package import ReelCore

/// A violation of a rule of a standard in a manifest.
package struct RuleViolation: Sendable {
  /// What a violation means for players.
  package enum Effect: Sendable {
    /// The text is not a manifest at all.
    case noManifest
    /// The manifest, or a rung of it, is lost.
    case loss
    /// A player may stumble over it.
    case risk
    /// No player stumbles over it: metadata, tolerated syntax, what only a schema requires, and rules that concern
    /// players that know later versions.
    case harmless
    /// Concluded from the names of segments, which may mislead: harmless if the media can be read.
    case harmlessIfRead
  }

  /// The reason, with the clause in parentheses, the URL, and the line or element.
  package private(set) var error: ReelError
  /// The violated clause, as `RFC 8216 §4.3.2.1`; nil if the text can't be read.
  package let clause: String?
  package let effect: Effect

  init(_ error: ReelError, _ effect: Effect) {
    self.error = error
    clause = nil
    self.effect = effect
  }

  init(_ reason: String, clause: String, _ effect: Effect, place: ReelError.Place?) {
    error = ReelError(.badManifest, "\(reason) (\(clause))", place: place)
    self.clause = clause
    self.effect = effect
  }

  /// The same in the document at this location.
  func located(at location: String) -> Self {
    var violation = self
    violation.error = error.located(at: location)
    return violation
  }
}
