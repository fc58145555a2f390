/// A signal to the owner of a player, sent at once on the thread where it happens.
package enum PlayerSignal: Sendable {
  /// An event of an item; nil if it concerns no item. The item may just have been replaced.
  case event(PlayerEvent, of: PlayerItem?)
  /// Loading has reached another stage.
  case progressed
  /// The buffer is full, or contains the rest of the item.
  case filled
  /// The total number of frames that decoders have returned.
  case decoded(count: Int)
}
