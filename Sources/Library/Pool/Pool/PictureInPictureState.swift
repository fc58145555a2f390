/// The state of a player that plays as picture in picture, outside the pool's window.
public enum PictureInPictureState: String, Sendable, Hashable {
  /// Not yet started.
  case none
  /// The player has left the window; its output is about to be attached.
  case willStart
  /// The output is attached, and the player plays on.
  case didStart
  /// The player is about to stop. If the output can't be attached, this follows `willStart`.
  case willStop
  /// The output is detached, and the player has ended.
  case didStop
}
