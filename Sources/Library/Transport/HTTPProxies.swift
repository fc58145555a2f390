internal import Foundation
public import ReelCore

/// The proxies that requests go through.
///
/// Connections are tunnelled with `CONNECT` (RFC 9110 §9.3.6), for `http` URLs too. Some proxies allow that
/// for port 443 only; requests for `http` URLs then fail. Requests to loopback addresses never use a proxy.
public struct HTTPProxies: Sendable, Hashable {
  /// One proxy.
  public struct Proxy: Sendable, Hashable {
    /// The host name or address.
    package var host: String
    /// The port, 1 to 65,535.
    package var port: Int
    /// The user name and password, `user:password`; `nil` for none. They go to the proxy in clear text.
    package var credentials: String?

    /// A proxy.
    public init(host: String, port: Int, credentials: String? = nil) {
      self.host = host
      self.port = port
      self.credentials = credentials
    }
  }

  /// The proxy for `http` URLs.
  package var http: Proxy?
  /// The proxy for `https` URLs.
  package var https: Proxy?
  /// The hosts that are reached directly: `example.com` (with all of its subdomains), `.example.com` (the same),
  /// `example.com:8080`, an address, or `*` for all.
  package var exceptions: [String]

  /// No proxies, unless stated.
  public init(http: Proxy? = nil, https: Proxy? = nil, exceptions: [String] = []) {
    self.http = http
    self.https = https
    self.exceptions = exceptions
  }

  /// Reads the proxies from the variables `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` of an
  /// environment, in lower or upper case; lower case takes precedence.
  ///
  /// In a CGI program, `HTTP_PROXY` in capital letters comes from a request's header field `Proxy` and is ignored.
  ///
  /// - Throws: `ReelError` of kind `usage` for a proxy that is not a URL or does not have the scheme `http`.
  public init(environment: [String: String]) throws(ReelError) {
    func value(_ name: String) -> String? {
      let capital = name == "http_proxy" && environment["REQUEST_METHOD"] != nil ? nil : name.uppercased()
      let found = environment[name] ?? capital.flatMap { environment[$0] }
      return found.flatMap { $0.isEmpty ? nil : $0 }
    }
    func proxy(_ name: String) throws(ReelError) -> Proxy? {
      guard let text = value(name) ?? value("all_proxy") else { return nil }
      return try Proxy(parsing: text, from: value(name) == nil ? "all_proxy" : name)
    }
    http = try proxy("http_proxy")
    https = try proxy("https_proxy")
    exceptions = (value("no_proxy") ?? "").split(whereSeparator: { $0 == "," || $0 == " " }).map(String.init)
  }

  /// Returns the proxy for a URL; nil if its host is reached directly.
  func proxy(for url: URL) -> Proxy? {
    let isSecure = url.scheme?.lowercased() == "https"
    guard let proxy = isSecure ? https : http, let host = url.host()?.lowercased(), !url.isLoopback
    else { return nil }
    let port = url.port ?? (isSecure ? 443 : 80)
    return exceptions.contains { Self.matches($0.lowercased(), host: host, port: port) } ? nil : proxy
  }

  // MARK: - Private

  private static func matches(_ exception: String, host: String, port: Int) -> Bool {
    if exception == "*" { return true }
    var name = exception[...]
    // An IPv6 address has colons of its own.
    if let colon = name.lastIndex(of: ":"), name.firstIndex(of: ":") == colon || name.hasPrefix("["),
      let stated = Int(name[name.index(after: colon)...])
    {
      guard stated == port else { return false }
      name = name[..<colon]
    }
    if name.hasPrefix("["), name.hasSuffix("]") { name = name.dropFirst().dropLast() }
    if name.hasPrefix("*.") { name = name.dropFirst() }
    if name.hasPrefix(".") { name = name.dropFirst() }
    return !name.isEmpty && (host == name || host.hasSuffix("." + name))
  }
}

extension HTTPProxies.Proxy {
  /// Parses `http://user:password@host:port`. The scheme may be missing; without a port it is 1080, as in
  /// curl.
  fileprivate init(parsing text: String, from variable: String) throws(ReelError) {
    let full = text.contains("://") ? text : "http://" + text
    guard let url = URL(string: full), let host = url.host(percentEncoded: false), !host.isEmpty,
      (1...65535).contains(url.port ?? 1080)
    else {
      throw ReelError(
        .usage, "\(variable) is not a proxy URL", advice: "write it as http://proxy.example:3128")
    }
    guard url.scheme?.lowercased() == "http" else {
      throw ReelError(
        .usage, "\(variable) names a proxy of the scheme \(url.scheme ?? ""):, which is not supported",
        advice: "use an http: proxy, or clear the variable")
    }
    var credentials: String?
    if let user = url.user(percentEncoded: false) {
      credentials = "\(user):\(url.password(percentEncoded: false) ?? "")"
    }
    self.init(host: host, port: url.port ?? 1080, credentials: credentials)
  }
}
