public import ReelPlayback

/// The settings of a ``PlayerPool``.
public struct PoolConfiguration: Sendable {
  /// The number of players, including the current item's. Less than 1 counts as 1. Defaults to 3.
  public var slotCount = 3
  /// Decides which neighbours are loaded, and how far.
  public var policy: any PreloadPolicy = AdjacentPreload()
  /// The settings of each player. By default, a player of a pool decodes up to 4 frames ahead
  /// (`PlayerConfiguration.ringFrameCapacity`).
  public var player: PlayerConfiguration
  /// What a player does at the end of its item. Defaults to `pause`.
  public var actionAtItemEnd = Player.ActionAtItemEnd.pause
  /// The number of decoders that may run at once; `nil` for one per core. The current item's decoder has priority.
  public var decodingPermits: Int?
  /// True if players may leave the window as picture in picture (``PlayerPool/startPictureInPicture(to:)``).
  public var allowsPictureInPicture = true
  /// The number of items beyond the window, in the direction of travel, to whose hosts the pool opens connections
  /// ahead.
  ///
  /// It takes effect only if the fetcher is a `ConnectionOpening`.
  public var connectionsAhead = 2
  /// True if posters are fetched ahead, and shown on the surface on a miss.
  public var showsPosters = true
  /// True if the ledger computes memory from the sizes of packets and frames, which is the same in every run. False
  /// also asks the allocator, and counts the frames that decoders really hold.
  package var modelsMemory = false
  /// The modelled decoding time on the pool's clock, with as many cores as there are permits; `nil` for real
  /// time.
  package var decodeCost: DecodeCost?

  /// The default settings.
  public init() {
    player = PlayerConfiguration()
    player.ringFrameCapacity = 4
  }
}
