/// What a walk was made with: enough to make it again.
public struct WalkSettings: Sendable, Hashable {
  /// The feed's file or name.
  public var feed: String
  public var itemCount: Int
  /// Slots of the pool.
  public var slotCount: Int
  /// The preload policy's written form.
  public var policy: String
  /// The modelled link's written form; nil for the network as it is.
  public var link: String?
  /// The dwell times' written form.
  public var dwell: String
  public var seed: UInt64
  /// The walk ran on a modelled clock.
  public var isVirtual: Bool
  /// What decoding a frame cost on the modelled clock; nil for what it really took.
  public var decodeCost: Duration?

  public init(
    feed: String, itemCount: Int, slotCount: Int, policy: String, link: String? = nil, dwell: String,
    seed: UInt64, isVirtual: Bool = false, decodeCost: Duration? = nil
  ) {
    self.feed = feed
    self.itemCount = itemCount
    self.slotCount = slotCount
    self.policy = policy
    self.link = link
    self.dwell = dwell
    self.seed = seed
    self.isVirtual = isVirtual
    self.decodeCost = decodeCost
  }
}
