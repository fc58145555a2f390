internal import Foundation
package import Logging
package import ReelCore
package import ReelFFmpeg
package import ReelManifest
package import ReelSources

/// A source of known kind, with all that its readers are made of.
package struct OpenSource: Sendable {
  package let source: ResolvedSource
  package let manifests: ManifestLoader
  package let context: TrackContext
  /// The presentation was made from the index of a media file.
  package private(set) var isIndexedFile = false

  package init(source: ResolvedSource, manifests: ManifestLoader, context: TrackContext) {
    self.source = source
    self.manifests = manifests
    self.context = context
  }

  /// The same source, but a fragmented MP4 file with an index of its fragments as a presentation of them.
  package func readingIndex() async throws -> OpenSource {
    guard case .resource(let resource) = source else { return self }
    let indexed = try await SourceResolver(manifests: manifests).indexed(resource)
    var opened = OpenSource(source: indexed, manifests: manifests, context: context)
    if case .presentation = indexed { opened.isIndexedFile = true }
    return opened
  }

  /// True for segments, those that the index of a file names included.
  package var isPresentation: Bool { if case .presentation = source { true } else { false } }

  /// The format of the manifest; nil for a media file.
  package var manifestFormat: ManifestFormat? {
    if case .presentation(let resolved) = source { resolved.presentation.format } else { nil }
  }

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

  /// Reads the playlists and indexes of all rungs of a manifest, images and metadata left out. The parameters are those of
  /// `ManifestLoader.loadAll`.
  ///
  /// Throws `ReelError` if it is a media file, or `CancellationError`.
  package func loadManifest(
    withImages: Bool = false, until end: Duration? = nil, _ documents: Locked<[LoadedManifest.Document]>
  ) async throws -> LoadedManifest {
    try await manifests.loadAll(of: try presentation, withImages: withImages, until: end, documents)
  }

  /// The manifest alone. Throws `ReelError` if it is a media file.
  package func manifest(_ documents: Locked<[LoadedManifest.Document]>) throws(ReelError) -> LoadedManifest {
    let resolved = try presentation
    var loaded = LoadedManifest(
      presentation: resolved.presentation, url: resolved.url, fetcher: manifests.fetcher)
    loaded.documents = documents.withLock { $0 }
    return loaded
  }

  /// Throws `ReelError` for a media file.
  var presentation: ResolvedPresentation {
    get throws(ReelError) {
      guard case .presentation(let resolved) = source else {
        throw ReelError(.badManifest, "a media file, not a manifest")
      }
      return resolved
    }
  }

  private var resource: MediaResource? { if case .resource(let resource) = source { resource } else { nil } }
}

extension OpenSource {
  /// Resolves a source.
  ///
  /// - Parameters:
  ///   - recorder: Measures the stages, by its clock.
  ///   - readsAhead: The property of `TrackContext`.
  ///   - storeUse: What all its requests belong to.
  ///   - record: Receives each manifest that is read.
  ///
  /// Throws `ReelError`, or `CancellationError`.
  package init(
    _ source: MediaSource, fetcher: any Fetching, configuration: LoadingConfiguration, scope: LoadScope,
    recorder: StartupRecorder, gate: (any DecodingGate)?, logger: Logger, readsAhead: Bool,
    storeUse: StoreUse = StoreUse(), recording record: (@Sendable (LoadedManifest.Document) -> Void)? = nil
  ) async throws {
    let fetcher = ConfinedFetcher(
      base: fetcher, source: source.url, headers: configuration.headers(of: source.url),
      storeUse: storeUse)
    manifests = ManifestLoader(
      fetcher: fetcher, configuration: configuration, scope: scope, recorder: recorder, record: record)
    context = TrackContext(
      name: source.name, fetcher: fetcher, configuration: configuration, scope: scope, recorder: recorder,
      gate: gate, logger: logger, readsAhead: readsAhead)
    self.source = try await SourceResolver(manifests: manifests).resolve(source)
  }
}

/// Settings that all readers need.
package struct TrackContext: Sendable {
  package let name: String
  let fetcher: any Fetching
  let configuration: LoadingConfiguration
  package let scope: LoadScope
  package let recorder: StartupRecorder
  let gate: (any DecodingGate)?
  let logger: Logger
  /// True if more than the first frame will be read. The next segments are then fetched ahead, and the decoder uses
  /// several threads, which delays the first frame but speeds up the rest.
  let readsAhead: Bool
  let providedKeys = ProvidedKeys()

  /// Returns the keys for the samples of a media file.
  func keys(of resource: MediaResource, scope: LoadScope) -> ContainerKeys {
    ContainerKeys(context: self, location: resource.name, scope: scope)
  }
}
