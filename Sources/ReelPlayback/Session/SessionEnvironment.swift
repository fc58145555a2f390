internal import Logging
internal import ReelCore
internal import ReelFFmpeg

/// What a player gives its items to be loaded with.
struct SessionEnvironment: Sendable {
  var fetcher: any Fetching
  var loading: LoadingConfiguration
  var account: MemoryAccount?
  var clock: any MonotonicClock
  /// Where its work is done.
  var runtime: any PlayerRuntime
  var gate: (any DecodingGate)?
  var logger: Logger
  var thresholds: BufferingThresholds
  var retryPolicy: ItemRetryPolicy
  var ringFrameCapacity: Int
  var ringByteCapacity: Int
  /// Chooses rungs by what transfers measure; else the highest at or under the cap.
  var isAdaptive: Bool
  /// In bits per second, where something is known ahead.
  var initialBandwidth: Double?
}
