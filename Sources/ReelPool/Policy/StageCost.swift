/// What it takes to bring an item to a stage, all stages before it included.
public struct StageCost: Sendable, Hashable {
  /// Memory that is held once the stage is reached, in bytes.
  public var memoryByteCount: Int
  /// Bytes that were fetched until then.
  public var networkByteCount: Int
  /// From the beginning of loading until then.
  public var duration: Duration

  public init(memoryByteCount: Int, networkByteCount: Int, duration: Duration) {
    self.memoryByteCount = memoryByteCount
    self.networkByteCount = networkByteCount
    self.duration = duration
  }
}
