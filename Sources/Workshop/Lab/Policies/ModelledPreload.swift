package import ReelCore
package import ReelModels
package import ReelPlayback
package import ReelPool

/// What the players of a model preload, as a policy of a lab. A pool can't follow it.
package struct ModelledPreload: PreloadPolicy {
  /// The policies of a lab that names none.
  package static let usual = ["none", "ahead:1", "ahead:2"]

  private let model: PlayerModel
  private let preload: String
  /// How the model differs from the lab's, in words; nil for the lab's.
  package let variant: String?

  /// - Parameters:
  ///   - text: What is preloaded, as users write it.
  ///   - variant: How `model` differs from the model of the lab.
  /// - Throws: `ReelError` of kind `usage` for a policy that a model does not have.
  package init(
    parsing text: String, of model: PlayerModel, variant: String? = nil
  ) throws(ReelError) {
    _ = try model.using(players: nil, preload: text)
    (self.model, preload, self.variant) = (model, text.trimmed.lowercased(), variant)
  }

  package var description: String { variant.map { "\(preload), \($0)" } ?? preload }

  package var playerCount: Int { (try? model.using(players: nil, preload: preload))?.preload.players ?? 1 }

  /// Returns the model with this policy.
  package func model(players: Int) throws(ReelError) -> PlayerModel {
    try model.using(players: players, preload: preload)
  }

  package func target(at distance: Int, in context: PreloadContext) -> PreloadTarget { .notLoaded }
}
