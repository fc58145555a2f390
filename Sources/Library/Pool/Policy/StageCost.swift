/// The cost of loading an item up to a stage, including all stages before it.
public struct StageCost: Sendable, Hashable {
  /// The memory held when the stage is reached, in bytes.
  public var memoryByteCount: Int
  /// The bytes fetched until then.
  public var networkByteCount: Int
  /// The time from the beginning of loading until then.
  public var duration: Duration

  /// A cost from its parts.
  public init(memoryByteCount: Int, networkByteCount: Int, duration: Duration) {
    self.memoryByteCount = memoryByteCount
    self.networkByteCount = networkByteCount
    self.duration = duration
  }
}
