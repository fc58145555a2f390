internal import Logging
internal import ReelCore
internal import ReelFFmpeg

/// What a player provides for loading its items.
struct SessionEnvironment: Sendable {
  var fetcher: any Fetching
  var loading: LoadingConfiguration
  var account: MemoryAccount?
  var clock: any MonotonicClock
  /// The runtime of its tasks and threads.
  var runtime: any PlayerRuntime
  var gate: (any DecodingGate)?
  /// Bounds the open video decoders; nil for no limit.
  var decoderLimit: (any DecoderLimit)?
  /// Opens the video decoders.
  var decoders: any DecoderMaking
  var logger: Logger
  var thresholds: BufferingThresholds
  var retryPolicy: ItemRetryPolicy
  var ringFrameCapacity: Int
  var ringByteCapacity: Int
  /// Chooses rungs by measured transfers; otherwise the highest at or below the cap.
  var isAdaptive: Bool
  /// In bits per second; nil if nothing is known in advance.
  var initialBandwidth: Double?
}
