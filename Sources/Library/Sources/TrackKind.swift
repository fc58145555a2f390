/// What a track has.
public enum TrackKind: String, Sendable, Hashable, CaseIterable {
  /// Video.
  case video
  /// Audio.
  case audio
}
