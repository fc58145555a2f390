public import ReelPlayback

/// The settings of a ``PlayerPool``.
public struct PoolConfiguration: Sendable {
  /// The number of players, including the current item's. Less than 1 counts as 1. Defaults to 3.
  public var slotCount = 3
  /// Decides which neighbours are loaded, how far and in which order. Defaults to ``AdaptivePreload``.
  public var policy: any PreloadPolicy = AdaptivePreload()
  /// The rung of an item's first segment, if the policy does not choose it. Defaults to `adapted`.
  public var firstRung = FirstRung.adapted
  /// True if a player assumes the pool's measured throughput (``PoolSituation/throughput``) until it has measured its
  /// own. Defaults to false.
  ///
  /// It takes effect only if players adapt the bit rate (`PlayerConfiguration.adaptsBitRate`).
  public var sharesThroughput = false
  /// The settings of each player. By default, a player of a pool decodes up to 4 frames ahead
  /// (`PlayerConfiguration.ringFrameCapacity`).
  public var player: PlayerConfiguration
  /// What a player does at the end of its item. Defaults to `pause`.
  public var actionAtItemEnd = Player.ActionAtItemEnd.pause
  /// The number of decoders that may run at once; `nil` for one per core. The current item's decoder has priority.
  public var decodingPermits: Int?
  /// The number of video decoders that may be open at once; `nil` for no limit. Less than 1 counts as 1.
  ///
  /// The current item always gets a decoder. If all others are taken, the preload with the highest rank number closes
  /// its own as soon as its call into the decoder returns; its frame stays on show. A preload that needs a decoder for
  /// its first frame waits for a free one by rank, but takes one that another preload keeps open only to start sooner.
  /// Each item that plays as picture in picture has one besides. Decoders of audio and of posters are not counted.
  public var maximumOpenDecoders: Int?
  /// The bytes that the players may hold; `nil` for no limit.
  ///
  /// A preload begins, or goes on to its next stage, only if the bytes held and the expected cost of the stage
  /// (``StageCosts``) fit. The limit is checked when an item reaches a stage and at each event of a player. If it is
  /// exceeded, preloads are ended as with ``PlayerPool/trim(to:)``. The current item and pinned players are never
  /// ended, even if they hold more.
  public var memoryLimit: Int?
  /// The number of transfers that run at once; `nil` for no limit. Less than 1 counts as 1.
  ///
  /// The current item's requests never wait for the limit, and requests of one item don't wait for each other. A
  /// transfer that nobody reads from does not count.
  public var maximumTransfers: Int?
  /// True if players may leave the window as picture in picture (``PlayerPool/startPictureInPicture(to:)``).
  public var allowsPictureInPicture = true
  /// The number of items beyond the window, in the direction of travel, to whose hosts the pool opens connections
  /// ahead.
  ///
  /// It takes effect only if the fetcher is a `ConnectionOpening`.
  public var connectionsAhead = 2
  /// True if posters are fetched ahead, and shown on the surface on a miss.
  public var showsPosters = true
  /// True if each player has a memory account. Without one, the ledger computes memory from the sizes of packets and frames,
  /// which is the same in every run.
  package var keepsAccounts = true

  /// The default settings.
  public init() {
    player = PlayerConfiguration()
    player.ringFrameCapacity = 4
  }
}
