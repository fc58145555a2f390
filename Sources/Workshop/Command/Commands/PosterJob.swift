import ReelCore
import ReelFFmpeg
import ReelPlayback

/// Finds and writes the posters of sources.
struct PosterJob: Sendable {
  var extractor: PosterExtractor
  let writer: PosterWriter
  let choice: Poster.Choice

  /// Writes the poster of one source.
  ///
  /// - Parameters:
  ///   - argument: The source as the user wrote it; nil leaves it out of the record.
  ///   - noteFirst: Called when the first of several candidates is there.
  func run(
    _ source: MediaSource, argument: String?, to target: PosterWriter.Target,
    noteFirst: @escaping @Sendable () -> Void
  ) async throws -> PosterRecord {
    try writer.check(target)
    let (poster, file) = try await extractor.poster(choice, of: source, noteFirst: noteFirst) { poster in
      try writer.write(poster.frame.frame, to: target)
    }
    return PosterRecord(
      source: argument, poster, choice, hdr: writer.format == .y4m ? nil : writer.hdr, file: file)
  }
}
