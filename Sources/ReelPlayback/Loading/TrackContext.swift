internal import Logging
internal import ReelCore
internal import ReelFFmpeg

/// What readers of every kind need.
struct TrackContext: Sendable {
  let name: String
  let fetcher: any Fetching
  let configuration: LoadingConfiguration
  let scope: LoadScope
  let recorder: StartupRecorder
  let gate: (any DecodingGate)?
  let logger: Logger
  /// More than the first picture is wanted: what comes next is fetched ahead, and frame threads are worth their
  /// delay.
  let readsAhead: Bool
  let providedKeys = ProvidedKeys()

  func options(isSeekable: Bool, keys: any SampleKeys) -> PictureReader.Options {
    var options = PictureReader.Options()
    options.threads = readsAhead ? configuration.decoderThreads : 1
    options.isSeekable = isSeekable
    options.keys = keys
    options.gate = gate
    let scope = scope
    options.isCancelled = { scope.isCancelled }
    return options
  }

  /// The keys for the samples of a media file.
  func keys(of resource: MediaResource, scope: LoadScope) -> ContainerKeys {
    ContainerKeys(context: self, location: resource.name, scope: scope)
  }
}
