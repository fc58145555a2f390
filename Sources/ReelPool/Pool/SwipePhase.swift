/// How far a swipe has come.
public enum SwipePhase: String, Sendable, Hashable {
  /// The finger has left the screen, and it is decided which item comes: its first frame is shown, and its decoder
  /// gets ready.
  case dragEnded
  /// The item stands still, and plays.
  case settled
}
