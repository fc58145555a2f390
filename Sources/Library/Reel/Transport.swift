public import Foundation
public import Logging
public import ReelPlayback
public import ReelPool
public import ReelReading
public import ReelSources
internal import ReelTransport

extension PlayerPool {
  /// A pool for one feed, over HTTP(S) and local files. It loads the first item and its neighbours, and shows the first
  /// frame, paused.
  ///
  /// - Parameters:
  ///   - feed: The items to swipe through. For several feeds on one pool, use a `PlayerService`.
  ///   - configuration: The number of players, the policy, and the settings of the players.
  ///   - logger: Gets the messages of the pool and its players.
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
  ///
  /// - Parameters:
  ///   - playerItem: The item to load, or `nil` for none.
  ///   - configuration: The settings of the player.
  ///   - logger: Gets the messages of the player.
  public convenience init(
    playerItem: PlayerItem?, configuration: PlayerConfiguration = PlayerConfiguration(),
    logger: Logger = Logger(label: "reel.playback")
  ) {
    self.init(fetcher: TransportFetcher(logger: logger), configuration: configuration, logger: logger)
    if let playerItem { replaceCurrentItem(with: playerItem) }
  }

  /// A player over HTTP(S) and local files. It begins to load the source at once.
  ///
  /// - Parameters:
  ///   - url: An `http`, `https` or `file` URL of a media file, an HLS playlist or a DASH MPD.
  ///   - configuration: The settings of the player.
  ///   - logger: Gets the messages of the player.
  public convenience init(
    url: URL, configuration: PlayerConfiguration = PlayerConfiguration(),
    logger: Logger = Logger(label: "reel.playback")
  ) {
    self.init(playerItem: PlayerItem(url: url), configuration: configuration, logger: logger)
  }
}

extension FrameExtractor {
  /// An extractor over HTTP(S) and local files.
  ///
  /// - Parameters:
  ///   - configuration: How sources are loaded.
  ///   - logger: Gets the messages of the extraction.
  public init(
    configuration: LoadingConfiguration = LoadingConfiguration(),
    logger: Logger = Logger(label: "reel.playback")
  ) {
    self.init(fetcher: TransportFetcher(logger: logger), configuration: configuration, logger: logger)
  }
}

extension SourceProber {
  /// A prober over HTTP(S) and local files.
  ///
  /// - Parameters:
  ///   - configuration: How sources are loaded.
  ///   - logger: Gets the messages of the probing.
  public init(
    configuration: LoadingConfiguration = LoadingConfiguration(),
    logger: Logger = Logger(label: "reel.playback")
  ) {
    self.init(fetcher: TransportFetcher(logger: logger), configuration: configuration, logger: logger)
  }
}
