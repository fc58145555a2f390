extension Gateway {
  /// The address that a gateway listens on, and how it delivers media.
  public struct Configuration: Sendable, Hashable {
    /// The name or address to listen on, such as `127.0.0.1`, or `0.0.0.0` for all addresses.
    public var host: String
    /// The port to listen on; 0 for any free port.
    public var port: Int
    /// True to relay all media. False to redirect clients to its origin if they can reach it (`http`, `https`).
    public var isProxy: Bool

    /// Creates a configuration. By default, the gateway listens on any free port for clients on this machine.
    public init(host: String = "127.0.0.1", port: Int = 0, isProxy: Bool = false) {
      self.host = host
      self.port = port
      self.isProxy = isProxy
    }
  }
}
