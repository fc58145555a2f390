/// The kind of track that stills were taken from.
package enum StillTrack: String, Sendable, Hashable {
  /// Key frames of a rung that can be played.
  case video
  /// A playlist of I-frames (HLS), or a rung for trick mode (DASH).
  case keyFrames = "key_frames"
  /// A playlist or AdaptationSet of images.
  case images
}
