/// Where a player stands that is taken out of the pool's window, as picture in picture.
public enum PictureInPictureState: String, Sendable, Hashable {
  case none
  case willStart
  case didStart
  case willStop
  case didStop
}
