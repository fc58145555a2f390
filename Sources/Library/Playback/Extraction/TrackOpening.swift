internal import Foundation
package import Logging
package import ReelCore
package import ReelFFmpeg
internal import ReelManifest

/// A source of known kind, with all that is needed to open its track on the thread that reads it.
package struct TrackOpening: Sendable {
  let source: ResolvedSource
  let resolver: SourceResolver
  package let context: TrackContext
  /// The presentation was made from the index of a media file.
  package var isIndexedFile = false

  /// The same source, but a fragmented MP4 file with an index of its fragments as a presentation of them.
  package func readingIndex() async throws -> TrackOpening {
    guard case .resource(let resource) = source else { return self }
    let indexed = try await resolver.indexed(resource)
    var opening = TrackOpening(source: indexed, resolver: resolver, context: context)
    if case .presentation = indexed { opening.isIndexedFile = true }
    return opening
  }

  /// True for segments, those that the index of a file names included.
  package var isPresentation: Bool { if case .presentation = source { true } else { false } }

  /// True for one file in Matroska or WebM.
  package var isMatroska: Bool { resource?.format == .matroska }

  /// True if all bytes are in local files.
  package var isLocal: Bool {
    switch source {
    case .presentation(let presentation): presentation.url.isFileURL
    case .resource(let resource): if case .file = resource.access { true } else { false }
    }
  }

  /// True if the bytes can be read only once, forward: standard input or a pipe.
  package var isPipe: Bool {
    switch resource?.access {
    case .standardInput: true
    case .response: resource?.isRepeatable == false
    case .file, .spooled, nil: false
    }
  }

  /// False for a file on a server that does not say how long it is.
  package var hasStatedLength: Bool {
    guard case .response(let response, _) = resource?.access else { return true }
    return response.resourceByteCount != nil || isPipe
  }

  private var resource: MediaResource? { if case .resource(let resource) = source { resource } else { nil } }
}

/// Opens the tracks of sources for extraction and probing.
package struct TrackOpener: Sendable {
  var fetcher: any Fetching
  let configuration: LoadingConfiguration
  /// The cores that all sources share; nil for sources that are read alone.
  var cores: CoreGate?
  /// A gate to acquire for each use of a decoder.
  var gate: (any DecodingGate)?
  let logger: Logger

  package init(
    fetcher: any Fetching, configuration: LoadingConfiguration, cores: CoreGate? = nil,
    gate: (any DecodingGate)? = nil, logger: Logger
  ) {
    self.fetcher = fetcher
    self.configuration = configuration
    self.cores = cores
    self.gate = gate
    self.logger = logger
  }

  /// Resolves `source`, calls `body`, and then ends all loading, even if `body` throws or the task is
  /// cancelled.
  ///
  /// - Parameters:
  ///   - readsAhead: True if more than the first few frames are needed, in order.
  ///   - record: Receives each manifest that is read.
  ///
  /// Throws `ReelError` located at the source, the error of `body`, or `CancellationError`.
  package func use<Result: Sendable>(
    _ source: MediaSource, readsAhead: Bool,
    recording record: (@Sendable (LoadedManifest.Document) -> Void)? = nil,
    _ body: (TrackOpening) async throws -> Result
  ) async throws -> Result {
    let share = cores.map { CoreShare(of: $0) }
    let scope = share.map { LoadScope(runtime: $0) } ?? LoadScope()
    return try await withTaskCancellationHandler {
      defer {
        scope.cancel()
        share?.end()
      }
      do {
        return try await body(
          try await open(source, readsAhead: readsAhead, scope: scope, share: share, recording: record))
      } catch let error as ReelError {
        throw error.located(at: source.name)
      } catch {
        if scope.isCancelled || Task.isCancelled { throw CancellationError() }
        throw error
      }
    } onCancel: {
      scope.cancel()
    }
  }

  // MARK: - Private

  private func open(
    _ source: MediaSource, readsAhead: Bool, scope: LoadScope, share: CoreShare?,
    recording record: (@Sendable (LoadedManifest.Document) -> Void)?
  ) async throws -> TrackOpening {
    let recorder = share.map { StartupRecorder(sharing: $0) } ?? StartupRecorder()
    let url: URL? = if case .url(let url) = source { url } else { nil }
    let fetcher = ConfinedFetcher(base: fetcher, source: url)
    let resolver = SourceResolver(
      fetcher: fetcher, configuration: configuration, scope: scope, recorder: recorder, record: record)
    let context = TrackContext(
      name: source.name, fetcher: fetcher, configuration: configuration, scope: scope, recorder: recorder,
      gate: gate ?? share, logger: logger, readsAhead: readsAhead)
    if url?.isLoopback == true { cores?.leaveCoreToServer() }
    await share?.begin(fetches: url?.isFileURL == false)
    return TrackOpening(
      source: try await resolver.resolve(source), resolver: resolver, context: context)
  }
}
