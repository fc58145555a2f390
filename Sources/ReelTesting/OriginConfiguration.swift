public import Foundation
public import ReelCore

extension Origin {
  /// What an origin serves, and how well.
  public struct Configuration: Sendable {
    /// The files below it are served; nil for none.
    public var directory: URL?
    /// Answers in memory, by decoded path with its first slash. They go before files.
    public var routes: [String: Response]
    /// Answers made when they are asked for; the first that knows a path gives them. They go before files too, and
    /// after `routes`.
    public var resources: [any DynamicResource]
    public var host: String
    /// 0 for a free one.
    public var port: Int
    /// The link between the origin and its clients; nil for none, as fast as the machine goes.
    public var link: LinkSpec?
    /// The first that matches a request and is not used up applies.
    public var faults: [FaultRule]
    /// False for an origin that sends the whole whatever part is asked for.
    public var supportsRanges: Bool

    public init(
      directory: URL? = nil, routes: [String: Response] = [:], resources: [any DynamicResource] = [],
      host: String = "127.0.0.1", port: Int = 0, link: LinkSpec? = nil, faults: [FaultRule] = [],
      supportsRanges: Bool = true
    ) {
      self.directory = directory
      self.routes = routes
      self.resources = resources
      self.host = host
      self.port = port
      self.link = link
      self.faults = faults
      self.supportsRanges = supportsRanges
    }
  }

  /// An answer in memory.
  public struct Response: Sendable, Hashable {
    /// Ranges are minded where it is 200, and the bytes are sent whole with any other.
    public var status: Int
    public var bytes: [UInt8]
    /// Nil for what the path's extension says.
    public var contentType: String?
    /// Header fields beside those that an origin sends by itself.
    public var headers: [HeaderField]

    public init(
      _ bytes: [UInt8], contentType: String? = nil, headers: [HeaderField] = [], status: Int = 200
    ) {
      self.status = status
      self.bytes = bytes
      self.contentType = contentType
      self.headers = headers
    }

    public init(
      _ text: String, contentType: String? = nil, headers: [HeaderField] = [], status: Int = 200
    ) {
      self.init(Array(text.utf8), contentType: contentType, headers: headers, status: status)
    }
  }

  /// What has happened at an origin up to a moment.
  public struct Snapshot: Sendable, Hashable {
    /// In the order in which they came.
    public var requests: [RequestRecord] = []
    /// When each connection was accepted, from the start of the origin.
    public var connectionArrivals: [Duration] = []
    public var acceptedConnectionCount: Int { connectionArrivals.count }
    public var openConnectionCount = 0
  }
}
