package import Foundation

extension URL {
  /// The address by which a program on this machine reaches an HTTP server that listens on a host and port. A host
  /// that stands for all addresses is replaced by the loopback address.
  package static func server(host: String, port: Int, path: String) -> URL? {
    let wildcards: Set = ["0.0.0.0", "::", ""]
    let name = wildcards.contains(host) ? "127.0.0.1" : host
    return URL(string: "http://\(name.contains(":") ? "[\(name)]" : name):\(port)/\(path)")
  }
}
