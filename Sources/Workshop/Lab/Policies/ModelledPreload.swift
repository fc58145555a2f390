package import ReelCore
package import ReelModels
package import ReelPlayback
package import ReelPool

/// What the players of a model preload, as a policy of a lab. A pool can't follow it.
package struct ModelledPreload: PreloadPolicy {
  /// The policies of a lab that names none.
  package static let usual = ["none", "ahead:1", "ahead:2"]

  private let model: PlayerModel
  package let description: String

  /// - Throws: `ReelError` of kind `usage` for a policy that a model does not have.
  package init(parsing text: String, of model: PlayerModel) throws(ReelError) {
    _ = try model.using(players: nil, preload: text)
    (self.model, description) = (model, text.trimmed.lowercased())
  }

  /// Returns the model with this policy.
  package func model(players: Int) throws(ReelError) -> PlayerModel {
    try model.using(players: players, preload: description)
  }

  package func target(at distance: Int, in context: PreloadContext) -> PreloadTarget { .notLoaded }
}
