public import ReelCore
package import ReelFFmpeg

/// The configuration of a player, for all of its items.
public struct PlayerConfiguration: Sendable {
  /// The configuration of loading: header fields, limits, the bandwidth cap, keys, decoder threads.
  public var loading = LoadingConfiguration()
  /// Whether rungs are chosen by the measured throughput. If false, the player chooses the highest rung at or under
  /// ``LoadingConfiguration/bandwidthCap``. False by default.
  public var adaptsBitRate = false
  /// The throughput to assume before the first measurement, in bits per second. If nil, adaptation starts
  /// with the highest rung up to 3 Mbit/s.
  public var initialBandwidth: Double?
  /// The amounts of buffered media at which playback starts and resumes.
  public var thresholds = BufferingThresholds()
  /// The number of retries of a failed item, and their delays.
  public var retryPolicy = ItemRetryPolicy()
  /// The number of frames to decode ahead. 8 by default.
  public var ringFrameCapacity = 8
  /// The bytes of frames to decode ahead. 256 MiB by default.
  public var ringByteCapacity = 256 << 20
  /// The clock by which frames are shown and durations are measured.
  public var clock: any MonotonicClock = SystemMonotonicClock()
  /// Runs the player's threads and tasks.
  package var runtime: any PlayerRuntime = SystemRuntime.shared
  /// Opens the player's video decoders.
  package var decoders: any DecoderMaking = LibavDecoders()
  /// A lock to share with other players while outputs are called. If nil, each player has its own.
  package var outputLock: OutputLock?

  /// Creates the default configuration.
  public init() {}
}
