package import Logging
package import ReelCore
package import ReelFFmpeg
package import ReelReading
package import ReelSources

/// Makes posters and storyboards of sources.
package struct StillExtractor: Sendable {
  /// Fetches manifests and media.
  package var fetcher: any Fetching
  let configuration: LoadingConfiguration
  var size: SizeLimit?
  let stillLimit: Duration?
  let clock: any MonotonicClock
  private let cores: CoreGate?
  private let gate: (any DecodingGate)?
  private let logger: Logger

  /// - Parameters:
  ///   - fetcher: Fetches manifests and media.
  ///   - size: The size of the stills, for the choice of a rung; nil for a poster to go by the bit rate, and for tiles of
  ///     320 pixels in width.
  ///   - stillLimit: The maximum time to wait for the index of a storyboard, for each of its tiles, and for each
  ///     candidate of a poster after the first frame; nil for no limit.
  ///   - clock: Measures that time.
  ///   - cores: Limits concurrent work among all that share it.
  ///   - gate: A gate to acquire for each use of a decoder.
  package init(
    fetcher: any Fetching, configuration: LoadingConfiguration, size: SizeLimit?,
    stillLimit: Duration? = nil, clock: any MonotonicClock = SystemMonotonicClock(),
    cores: CoreGate? = nil, gate: (any DecodingGate)? = nil, logger: Logger
  ) {
    self.fetcher = fetcher
    self.configuration = configuration
    self.size = size
    self.stillLimit = stillLimit
    self.clock = clock
    self.cores = cores
    self.gate = gate
    self.logger = logger
  }

  /// Returns what opens a source, and the counter of its requests and bytes.
  func opener(_ configuration: LoadingConfiguration) -> (counter: TrafficCounter, opener: TrackOpener) {
    let counter = TrafficCounter(fetcher, collectsChunks: true)
    let opener = TrackOpener(
      fetcher: counter, configuration: configuration, cores: cores, gate: gate, limit: .sources,
      logger: logger)
    return (counter, opener)
  }
}
