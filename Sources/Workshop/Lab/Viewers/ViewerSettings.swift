package import ReelCore
package import ReelModels
package import ReelPlayback
internal import ReelSimulation

/// How viewers load and play: as Reel's player does, or by the rules of another player's model.
package struct ViewerSettings: Sendable {
  /// Those of a player: loading, thresholds, retries, clock and runtime. `adaptsBitRate` is true unless it is changed.
  package var player: PlayerConfiguration
  /// The media to load ahead. 3 s by default.
  package var buffer = Duration.seconds(3)
  /// The model, whose rules replace the thresholds, the buffer and the choice of rungs; nil for Reel's own.
  package let model: PlayerModel?

  /// - Throws: `ReelError` of kind `usage` that names what the model has and viewers have not.
  package init(_ player: PlayerConfiguration = PlayerConfiguration(), model: PlayerModel? = nil) throws(ReelError) {
    self.player = player
    self.player.adaptsBitRate = true
    self.model = model
  }
}
