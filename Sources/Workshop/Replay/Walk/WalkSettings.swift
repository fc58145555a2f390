public import ReelPool

/// The settings of a walk, complete enough to repeat it.
public struct WalkSettings: Sendable, Hashable {
  /// The name or file of the feed.
  public var feed: String
  /// The number of items in the feed.
  public var itemCount: Int
  /// The number of slots in the pool.
  public var slotCount: Int
  /// The preload policy, such as `adjacent`.
  public var policy: String
  /// The modelled link, such as `10Mbit/50ms`; `nil` for the real network.
  public var link: String?
  /// The dwell times, such as `exp:5s`.
  public var dwell: String
  /// The shares of flicks, swipes back and bursts; `nil` if a trace determines the swipes, and in reports that do not
  /// state them.
  public var shares: SwipeShares?
  /// The seed of the plan.
  public var seed: UInt64
  /// True if the walk ran in a simulation. Damage and resident memory are then not measured.
  public var isVirtual: Bool
  /// The simulated time that decoding a frame cost; `nil` for the real time.
  public var decodeCost: Duration?
  /// The rung of each item's first segment.
  public var firstRung = FirstRung.adapted
  /// The device whose limits and costs applied: a name or a file; `nil` for none.
  public var device: String?

  /// Settings for a report.
  public init(
    feed: String, itemCount: Int, slotCount: Int, policy: String, link: String? = nil, dwell: String,
    shares: SwipeShares? = nil, seed: UInt64, isVirtual: Bool = false, decodeCost: Duration? = nil,
    device: String? = nil
  ) {
    self.feed = feed
    self.itemCount = itemCount
    self.slotCount = slotCount
    self.policy = policy
    self.link = link
    self.dwell = dwell
    self.shares = shares
    self.seed = seed
    self.isVirtual = isVirtual
    self.decodeCost = decodeCost
    self.device = device
  }
}
