/// Why another rung was chosen.
public enum RungSwitchCause: String, Sendable, Hashable, CaseIterable {
  /// The adaptation chose a higher rung.
  case adaptationUp
  /// The adaptation chose a lower rung.
  case adaptationDown
  /// The rung before could not be loaded.
  case failure
  /// The rung is tried again some time after it could not be loaded.
  case retry
  /// The rung before exceeds the limit for the bit rate or the height.
  case limit
  /// The first segment was chosen under a limit of its own.
  case startup
  /// A new period has other rungs.
  case period
}
