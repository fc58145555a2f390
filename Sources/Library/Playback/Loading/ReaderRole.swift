/// The streams that a reader reads.
enum ReaderRole: Sendable {
  /// Video, and muxed audio if wanted.
  case main(wantsAudio: Bool)
  /// An audio rendition with segments of its own, of the given group if there are several.
  case audio(group: String?)

  /// The kind of track that a loss of its media concerns.
  var kind: PlayerItem.Track.Kind { if case .main = self { .video } else { .audio } }
}
