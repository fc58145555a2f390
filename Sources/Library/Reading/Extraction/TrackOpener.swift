internal import Foundation
package import Logging
package import ReelCore
package import ReelFFmpeg
internal import ReelManifest
package import ReelSources

/// Opens the tracks of sources for extraction and probing.
package struct TrackOpener: Sendable {
  package var fetcher: any Fetching
  package var configuration: LoadingConfiguration
  /// The cores that all sources share; nil for sources that are read alone.
  var cores: CoreGate?
  /// A gate to acquire for each use of a decoder.
  var gate: (any DecodingGate)?
  /// The sources that may be read at a time; nil for no limit, as for those that share `cores`.
  private let limit: CoreGate?
  let logger: Logger

  package init(
    fetcher: any Fetching, configuration: LoadingConfiguration, cores: CoreGate? = nil,
    gate: (any DecodingGate)? = nil, limit: CoreGate? = nil, logger: Logger
  ) {
    self.fetcher = fetcher
    self.configuration = configuration
    self.cores = cores
    self.gate = gate
    self.limit = cores == nil ? limit : nil
    self.logger = logger
  }

  /// Resolves `source`, calls `body`, and then ends all loading, even if `body` throws or the task is
  /// cancelled.
  ///
  /// - Parameters:
  ///   - readsAhead: True if more than the first few frames are needed, in order.
  ///   - record: Receives each manifest that is read.
  ///   - body: It is called again if what a store has does not do.
  ///
  /// Throws `ReelError` located at the source, the error of `body`, or `CancellationError`.
  package func use<Result: Sendable>(
    _ source: MediaSource, readsAhead: Bool,
    recording record: (@Sendable (LoadedManifest.Document) -> Void)? = nil,
    _ body: (OpenSource) async throws -> Result
  ) async throws -> Result {
    func read(_ storeUse: StoreUse) async throws -> Result {
      try await self.read(source, readsAhead: readsAhead, storeUse, recording: record, body)
    }
    func readOneVersion() async throws -> Result {
      let storeUse = StoreUse()
      do {
        return try await read(storeUse)
      } catch let error as ReelError where storeUse.isMisled(by: error) {
        return try await read(StoreUse(isBypassed: true))
      }
    }
    guard let limit else { return try await readOneVersion() }
    return try await limit.withPermit { try await readOneVersion() }
  }

  /// Reads the manifest at `source`. With `readsSegments`, also reads the playlists and indexes of all rungs, as far as they
  /// are available.
  ///
  /// - Parameter readsImages: True to also read those of images and metadata, which are never played.
  ///
  /// Throws `ReelError` if `source` is not a manifest or can't be read, or `CancellationError`.
  package func manifest(
    at source: MediaSource, readsSegments: Bool = true, readsImages: Bool = false
  ) async throws -> LoadedManifest {
    let documents = Locked<[LoadedManifest.Document]>([])
    return try await use(
      source, readsAhead: false, recording: { document in documents.withLock { $0.append(document) } }
    ) { opening in
      guard readsSegments else { return try opening.manifest(documents) }
      return try await opening.loadManifest(withImages: readsImages, documents)
    }
  }

  /// Calls `body`, which waits for the program, on the thread of a source. Meanwhile another source may be read.
  func pausing(_ body: () -> Void) {
    limit?.release()
    body()
    limit?.acquire()
  }

  // MARK: - Private

  private func read<Result: Sendable>(
    _ source: MediaSource, readsAhead: Bool, _ storeUse: StoreUse,
    recording record: (@Sendable (LoadedManifest.Document) -> Void)?,
    _ body: (OpenSource) async throws -> Result
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
          try await open(
            source, readsAhead: readsAhead, storeUse, scope: scope, share: share, recording: record))
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

  private func open(
    _ source: MediaSource, readsAhead: Bool, _ storeUse: StoreUse, scope: LoadScope, share: CoreShare?,
    recording record: (@Sendable (LoadedManifest.Document) -> Void)?
  ) async throws -> OpenSource {
    // The clock of a share leaves out the wait for cores.
    let recorder =
      share.map { share in StartupRecorder(clock: share) { share.endMeasurement() } } ?? StartupRecorder()
    if source.url?.isLoopback == true { cores?.leaveCoreToServer() }
    await share?.begin(fetches: source.url?.isFileURL == false)
    return try await OpenSource(
      source, fetcher: fetcher, configuration: configuration, scope: scope, recorder: recorder,
      gate: gate ?? share, logger: logger, readsAhead: readsAhead, storeUse: storeUse, recording: record)
  }
}
