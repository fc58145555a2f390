/// Which streams a reader is for.
enum ReaderRole: Sendable {
  /// Video, and the audio that is muxed with it where that is wanted.
  case main(wantsAudio: Bool)
  /// An audio rendition of its own, of that group where there are several.
  case audio(group: String?)
}
