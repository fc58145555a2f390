/// What the owner of a player is told at once, on the thread where it happens.
package enum PlayerSignal: Sendable {
  case event(PlayerEvent)
  /// Loading has reached another stage.
  case progressed
}
