/// How a viewer has gone through a feed: the latest swipes.
public struct ViewingHistory: Sendable, Hashable {
  /// One swipe away from an item.
  public struct Swipe: Sendable, Hashable {
    /// How long the item had been played, in wall-clock time; 0 if its own swipe had not settled.
    public var watchedDuration: Duration
    /// True for a swipe towards higher indices.
    public var isForward: Bool

    /// A swipe.
    public init(watchedDuration: Duration, isForward: Bool) {
      self.watchedDuration = watchedDuration
      self.isForward = isForward
    }
  }

  /// The number of swipes that are kept: 32.
  public static let limit = 32

  /// The latest swipes, in their order.
  public private(set) var swipes: [Swipe] = []

  /// A history without swipes.
  public init() {}

  /// Adds a swipe. The oldest one goes if there are more than ``limit``.
  public mutating func record(_ swipe: Swipe) {
    if swipes.count >= Self.limit { swipes.removeFirst() }
    swipes.append(swipe)
  }

  /// The mean time for which items were watched, with `prior` counted as one more.
  public func meanWatchedDuration(prior: Duration) -> Duration {
    swipes.reduce(prior) { $0 + $1.watchedDuration } / (swipes.count + 1)
  }
}
