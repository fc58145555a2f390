public import ReelPlayback

/// How a pool works.
public struct PoolConfiguration: Sendable {
  /// Players, the current one included; at least 1. 3: previous, current, next.
  public var slotCount = 3
  /// How far neighbours are loaded.
  public var policy: any PreloadPolicy = AdjacentPreload()
  /// Of each player. The pool's decoders have one thread each, and 4 frames are decoded ahead.
  public var player: PlayerConfiguration
  /// What a player does at the end of its item.
  public var actionAtItemEnd = Player.ActionAtItemEnd.pause
  /// Decoders that use the processor at once; nil for one a core. The current item's goes first.
  public var decodingPermits: Int?
  /// Players may be taken out of the window (`PlayerPool.pin`).
  public var allowsPictureInPicture = true
  /// Hosts of items beyond the window, in the direction of travel, to which a connection is opened ahead.
  public var connectionsAhead = 2
  /// Posters are fetched ahead, and shown on a miss.
  public var showsPosters = true
  /// The ledger asks the allocator; false counts only what the owners of memory count themselves, which is the same in
  /// every run.
  package var countsHeap = true
  /// What decoding takes on the pool's clock, on as many modelled cores as there are permits; nil for what it takes.
  package var decodeCost: DecodeCost?

  public init() {
    player = PlayerConfiguration()
    player.ringFrameCapacity = 4
  }
}
