public import ReelCore
public import ReelManifest

/// What loading follows: the rung's cap, headers, limits.
public struct LoadingConfiguration: Sendable {
  /// The highest rung at or under this is taken, else the lowest. 3 Mbit/s.
  public var bandwidthCap: Int = 3_000_000
  /// Rungs with more lines are left out where there are others.
  public var maximumHeight: Int?
  /// ISO 639 or RFC 5646, the most wanted first: which audio is played where there are several.
  public var audioLanguages: [String] = []
  /// Sent with every request.
  public var headers: [HeaderField] = []
  /// Provides the keys of encrypted samples. Without it, only media plays that is in the clear or whose key has a URL
  /// in a playlist.
  public var keyProvider: (any KeyProvider)?
  public var manifestLimits = ManifestLimits()
  /// Frame threads of a decoder.
  public var decoderThreads = 1
  /// A resource that has to be read whole before it can be used (an index at its end, and no ranges) is spooled to
  /// a temporary file, up to so many bytes. 2 GiB.
  public var spoolByteLimit: Int64 = 2 << 30
  /// How long a live manifest may bring nothing new before it is given up. 30 s.
  public var liveStallLimit = Duration.seconds(30)
  /// Live presentations are followed by the clock of a server, where their manifest names one (UTCTiming).
  public var asksServersForTime = true
  /// Tells the time that live presentations are followed by.
  package var clock: any WallClock = SystemWallClock()
  /// Local files are asked of the fetcher as remote ones are, so that they cross a modelled link.
  package var fetchesFiles = false

  public init() {}
}
