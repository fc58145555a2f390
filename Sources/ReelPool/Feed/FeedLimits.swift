/// How much a feed may hold.
public struct FeedLimits: Sendable, Hashable {
  /// Bytes of the file; 16 MiB unless told.
  public var byteCount: Int
  /// Items of all its feeds together; 100,000 unless told.
  public var itemCount: Int
  /// Bytes of one URL or path; 65,536 unless told.
  public var referenceByteCount: Int

  public init(byteCount: Int = 16 << 20, itemCount: Int = 100_000, referenceByteCount: Int = 65_536) {
    self.byteCount = byteCount
    self.itemCount = itemCount
    self.referenceByteCount = referenceByteCount
  }
}
