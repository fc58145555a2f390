internal import Logging
internal import ReelCore
internal import ReelFFmpeg
package import ReelSources

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
