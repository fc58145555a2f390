/// What the owner of a player is told at once, on the thread where it happens.
package enum PlayerSignal: Sendable {
  case event(PlayerEvent)
  /// Loading has reached another stage.
  case progressed
  /// A picture has come out of a decoder; so many have so far.
  case decoded(count: Int)
}
