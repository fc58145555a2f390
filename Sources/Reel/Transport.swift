public import Logging
public import ReelPlayback
public import ReelPool
internal import ReelTransport

extension PlayerPool {
  /// A pool that walks `feed` over HTTP(S) and local files: it begins to load the first item and its neighbours, and shows
  /// the first frame, paused.
  ///
  /// - Parameters:
  ///   - feed: Where several feeds share a pool, use a `PlayerService`.
  ///   - configuration: How many players, and how they load.
  public convenience init(
    feed: Feed, configuration: PoolConfiguration = PoolConfiguration(),
    logger: Logger = Logger(label: "reel.pool")
  ) {
    self.init(
      feed: feed, fetcher: TransportFetcher(logger: logger), configuration: configuration, logger: logger)
  }
}

extension Player {
  /// A player over HTTP(S) and local files. It begins to load the item at once.
  public convenience init(
    playerItem: PlayerItem?, configuration: PlayerConfiguration = PlayerConfiguration(),
    logger: Logger = Logger(label: "reel.playback")
  ) {
    self.init(fetcher: TransportFetcher(logger: logger), configuration: configuration, logger: logger)
    if let playerItem { replaceCurrentItem(with: playerItem) }
  }
}

extension FrameExtractor {
  /// An extractor over HTTP(S) and local files.
  public init(
    configuration: LoadingConfiguration = LoadingConfiguration(),
    logger: Logger = Logger(label: "reel.playback")
  ) {
    self.init(fetcher: TransportFetcher(logger: logger), configuration: configuration, logger: logger)
  }
}

extension SourceProber {
  /// A prober over HTTP(S) and local files.
  public init(
    configuration: LoadingConfiguration = LoadingConfiguration(),
    logger: Logger = Logger(label: "reel.playback")
  ) {
    self.init(fetcher: TransportFetcher(logger: logger), configuration: configuration, logger: logger)
  }
}
