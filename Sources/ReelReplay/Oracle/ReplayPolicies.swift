internal import Foundation
package import ReelCore
package import ReelPool

/// The preload policies of a simulated walk by the names that users write: those of `PreloadPolicies`, and `oracle`.
package enum ReplayPolicies {
  /// The written forms, with what each does, in the order in which help prints them.
  package static let forms: [(form: String, meaning: String)] =
    PreloadPolicies.forms + [
      (
        "oracle",
        "the best that full knowledge of walk and link allows, for comparison; needs --virtual and --link"
      )
    ]

  /// Reads a policy in one of `forms`, in any letter case. The policy `oracle` knows nothing until a `SimulatedWalk`
  /// with the chunks of its items begins.
  ///
  /// - Throws: `ReelError` of kind `usage` if `text` is none of them.
  package static func parse(_ text: String) throws(ReelError) -> any PreloadPolicy {
    if text.trimmingCharacters(in: .whitespaces).lowercased() == "oracle" { return OraclePreload() }
    return try PreloadPolicies.parse(text, listing: forms.map(\.form))
  }
}
