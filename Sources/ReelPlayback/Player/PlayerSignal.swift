/// What the owner of a player is told at once, on the thread where it happens.
package enum PlayerSignal: Sendable {
  /// What happens to an item; nil for what is no item's. It may be one that was replaced just now.
  case event(PlayerEvent, of: PlayerItem?)
  /// Loading has reached another stage.
  case progressed
  /// A frame has come out of a decoder; so many have so far.
  case decoded(count: Int)
}
