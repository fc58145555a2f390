public import ReelCore

/// How a player works, for all of its items.
public struct PlayerConfiguration: Sendable {
  /// Of sources: headers, limits, the cap of the rung, decoder threads.
  public var loading = LoadingConfiguration()
  /// Chooses rungs by what transfers measure; else the highest at or under `loading.bandwidthCap`.
  public var adaptsBitRate = false
  /// In bits per second: what adaptation begins with, where something is known.
  public var initialBandwidth: Double?
  public var thresholds = BufferingThresholds()
  /// How often an item is tried again.
  public var retryPolicy = ItemRetryPolicy()
  /// Decoded frames that are kept ahead.
  public var ringFrameCapacity = 8
  /// And their bytes. 256 MiB.
  public var ringByteCapacity = 256 << 20
  /// Tells the time that frames are shown by, and that everything is measured by.
  public var clock: any MonotonicClock = SystemMonotonicClock()
  /// Where the work is done.
  package var runtime: any PlayerRuntime = SystemRuntime.shared
  /// What the players' outputs share; nil for a lock of each player's own.
  package var outputLock: OutputLock?

  public init() {}
}
