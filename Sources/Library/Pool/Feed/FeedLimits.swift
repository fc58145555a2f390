/// The largest feed file that ``FeedFile`` accepts.
public struct FeedLimits: Sendable, Hashable {
  /// Bytes of the file. Defaults to 16 MiB.
  public var byteCount: Int
  /// Items of all feeds in the file together. Defaults to 100,000.
  public var itemCount: Int
  /// Bytes of one URL or path. Defaults to 65,536.
  public var referenceByteCount: Int

  /// The default limits, unless others are given.
  public init(byteCount: Int = 16 << 20, itemCount: Int = 100_000, referenceByteCount: Int = 65_536) {
    self.byteCount = byteCount
    self.itemCount = itemCount
    self.referenceByteCount = referenceByteCount
  }
}
