extension Gateway {
  /// Where a gateway listens, and what it does with media.
  public struct Configuration: Sendable, Hashable {
    /// A name or an address of this machine.
    public var host: String
    /// 0 for a free one.
    public var port: Int
    /// True where all media is passed through; else clients are sent to its origin.
    public var isProxy: Bool

    public init(host: String = "127.0.0.1", port: Int = 0, isProxy: Bool = false) {
      self.host = host
      self.port = port
      self.isProxy = isProxy
    }
  }
}
