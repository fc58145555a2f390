internal import Logging
internal import ReelCore
internal import ReelFFmpeg

/// The environment that a player provides for loading its items.
struct SessionEnvironment: Sendable {
  var fetcher: any Fetching
  var loading: LoadingConfiguration
  var account: MemoryAccount?
  var clock: any MonotonicClock
  /// The runtime of its tasks and threads.
  var runtime: any PlayerRuntime
  var gate: (any DecodingGate)?
  /// Limits the open video decoders; nil for no limit.
  var decoderLimit: (any DecoderLimit)?
  /// Opens the video decoders.
  var decoders: any DecoderMaking
  var logger: Logger
  var thresholds: BufferingThresholds
  var retryPolicy: ItemRetryPolicy
  var ringFrameCapacity: Int
  var ringByteCapacity: Int
  /// True to choose rungs by measured transfers; false for the highest at or below the cap.
  var isAdaptive: Bool
  /// The initial bandwidth in bits per second; nil if nothing is known in advance.
  var initialBandwidth: Double?
}
