/// The phase of a swipe.
public enum SwipePhase: String, Sendable, Hashable {
  /// The finger has left the screen, so the next item is known: its first frame is shown, and its decoder is opened.
  case dragEnded
  /// The swipe has come to rest: the item plays.
  case settled
}
