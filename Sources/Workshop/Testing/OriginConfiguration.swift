public import Foundation
public import ReelCore

extension Origin {
  /// The resources that an origin serves, the address that it listens on, and its link and faults.
  public struct Configuration: Sendable {
    /// The directory whose files are served; nil for none.
    public var directory: URL?
    /// Responses in memory, by percent-decoded path with its leading slash. They take precedence over `resources` and
    /// files.
    public var routes: [String: Response]
    /// Resources that generate their responses. The first one with a response for a path applies. They take precedence
    /// over files.
    public var resources: [any DynamicResource]
    /// The name or address to listen on.
    public var host: String
    /// The port to listen on; 0 for any free port.
    public var port: Int
    /// The modelled link between the origin and its clients; nil for no limit.
    public var link: LinkSpec?
    /// The faults. The first rule that matches a request and is not used up applies.
    public var faults: [FaultRule]
    /// False to ignore ranges and always send the whole resource.
    public var supportsRanges: Bool

    /// Creates a configuration. By default, the origin listens on any free port of this machine and serves nothing.
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

  /// A response in memory.
  public struct Response: Sendable, Hashable {
    /// The HTTP status. Ranges apply to 200 only; with any other status, all bytes are sent.
    public var status: Int
    /// The body.
    public var bytes: [UInt8]
    /// The media type; nil to derive it from the extension of the path.
    public var contentType: String?
    /// Additional header fields.
    public var headers: [HeaderField]

    /// Creates a response from bytes.
    public init(
      _ bytes: [UInt8], contentType: String? = nil, headers: [HeaderField] = [], status: Int = 200
    ) {
      self.status = status
      self.bytes = bytes
      self.contentType = contentType
      self.headers = headers
    }

    /// Creates a response from text in UTF-8.
    public init(
      _ text: String, contentType: String? = nil, headers: [HeaderField] = [], status: Int = 200
    ) {
      self.init(Array(text.utf8), contentType: contentType, headers: headers, status: status)
    }
  }

  /// The requests and connections of an origin up to a point in time.
  public struct Snapshot: Sendable, Hashable {
    /// The requests, in order of arrival.
    public var requests: [RequestRecord] = []
    /// The time at which each connection was accepted, measured from the creation of the origin.
    public var connectionArrivals: [Duration] = []
    /// The number of connections accepted so far.
    public var acceptedConnectionCount: Int { connectionArrivals.count }
    /// The number of connections that are open.
    public var openConnectionCount = 0
  }
}
