import ReelCore
import ReelFFmpeg
import ReelPlayback

/// Makes and writes the storyboards of sources.
struct StoryboardJob: Sendable {
  var extractor: StoryboardExtractor
  let style: StoryboardStyle
  let spacing: Storyboard.Spacing

  /// Writes the storyboard of one source.
  ///
  /// - Parameters:
  ///   - argument: The source as the user wrote it.
  ///   - stem: The beginning of the files' names.
  ///   - noteOpening: Called when the source has answered.
  func run(
    _ source: MediaSource, argument: String, stem: String, existing: ExistingFiles,
    noteOpening: @escaping @Sendable () -> Void
  ) async throws -> StoryboardRecord {
    try StoryboardWriter(style, stem: stem, existing: existing).check()
    let (style, clock) = (style, SystemMonotonicClock())
    let began = clock.now
    return try await extractor.storyboard(spacing, of: source, noteOpening: noteOpening) { tiles in
      let before = ThreadTime.now
      let writer = StoryboardWriter(style, stem: stem, existing: existing)
      do {
        while let tile = try tiles.next() {
          try writer.add(tile)
        }
        let storyboard = try tiles.storyboard()
        try writer.finish(storyboard)
        return StoryboardRecord(
          source: argument, storyboard, writer, wall: clock.now - began,
          processor: storyboard.processorTime + (ThreadTime.now - before))
      } catch {
        writer.discard()
        throw error
      }
    }
  }
}
