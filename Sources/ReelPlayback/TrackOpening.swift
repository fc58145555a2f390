internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelManifest

/// A source whose kind is known, with all that is needed to open its track on the thread that will read it.
struct TrackOpening: Sendable {
  let source: ResolvedSource
  let resolver: SourceResolver
  let context: TrackContext
  /// Times other than the first are wanted.
  let seeks: Bool

  /// Sends the first request and finds out what the source is.
  ///
  /// - Parameter readsAhead: more than the first few pictures are wanted, one after the other.
  static func prepare(
    _ source: MediaSource, readsAhead: Bool, seeks: Bool, fetcher: any Fetching,
    configuration: LoadingConfiguration,
    gate: (any DecodingGate)?, logger: Logger, scope: LoadScope, recorder: StartupRecorder
  ) async throws -> TrackOpening {
    let url: URL? = if case .url(let url) = source { url } else { nil }
    let fetcher = ConfinedFetcher(base: fetcher, source: url)
    let resolver = SourceResolver(
      fetcher: fetcher, configuration: configuration, scope: scope, recorder: recorder)
    let context = TrackContext(
      name: source.name, fetcher: fetcher, configuration: configuration, scope: scope, recorder: recorder,
      gate: gate,
      logger: logger, readsAhead: readsAhead)
    return TrackOpening(
      source: try await resolver.resolve(source), resolver: resolver, context: context, seeks: seeks)
  }

  /// Blocks while the track is opened.
  func open() throws -> any VideoTrackReader {
    switch source {
    case .resource(let resource):
      try ResourceTrackReader(resource, seeks: seeks, context: context)
    case .presentation(let presentation, _):
      try SegmentedTrackReader(presentation, resolver: resolver, context: context)
    }
  }
}
