package import Foundation
public import HTTPTypes

/// A server that may get the credentials of a source besides the source's own.
public struct CredentialHost: Sendable, Hashable {
  /// The name or address of the host, in lower case.
  public let host: String
  /// The port; nil for any.
  public let port: Int?

  /// Creates a host by its name or address, such as `cdn.example.com` or `::1`. Its subdomains are other hosts.
  public init(_ host: String, port: Int? = nil) {
    self.host = host.lowercasedASCII
    self.port = port
  }

  /// Reads `HOST` or `HOST:PORT`, with an IPv6 address in brackets.
  ///
  /// - Throws: `ReelError` of kind `usage` for any other text.
  package init(parsing text: String) throws(ReelError) {
    guard let url = URL(string: "//\(text)"), let host = url.host(percentEncoded: false), !host.isEmpty,
      url.user == nil, url.path().isEmpty, url.query() == nil, url.fragment() == nil,
      url.port.map({ (1...65535).contains($0) }) ?? true, !text.hasSuffix(":"), !text.contains("*")
    else {
      // The text is not repeated: it may have a password.
      throw ReelError(.usage, "expected HOST or HOST:PORT")
    }
    self.init(host, port: url.port)
  }
}

/// The scheme, host and port of an HTTP server: its origin (RFC 6454 §4).
package struct ServerAddress: Sendable, Hashable, CustomStringConvertible {
  package let isSecure: Bool
  /// In lower case. Two spellings of an address, or a name with a dot at its end, are different hosts.
  package let host: String
  package let port: Int

  /// Nil for a URL of another scheme than `http` and `https`, or without a host.
  package init?(_ url: URL) {
    guard let scheme = url.scheme?.lowercasedASCII, scheme == "http" || scheme == "https",
      let host = url.host(percentEncoded: false), !host.isEmpty
    else { return nil }
    isSecure = scheme == "https"
    self.host = host.lowercasedASCII
    port = url.port ?? (isSecure ? 443 : 80)
  }

  /// Such as `https://example.com:443`.
  package var description: String { "\(isSecure ? "https" : "http")://\(host):\(port)" }
}

/// The header fields of the requests for one source, and the servers that get them.
///
/// This type alone decides who gets credentials. They go to the server of the source, by scheme, host and port, and to
/// the hosts that the user has named, but never over `http` if the source is at `https`. All other fields go everywhere.
/// Credentials are the fields of `HTTPField.isCredential`, and the user name and password of a URL.
///
/// Cookies of a `CookieStore` go where their own domain, path and `Secure` allow, unless the request has a `Cookie` field.
package struct SourceHeaders: Sendable, Hashable {
  private struct Credential: Sendable, Hashable {
    var field: HTTPField
    /// The server it belongs to; nil for none.
    var owner: ServerAddress?
  }

  private let source: ServerAddress?
  private let hosts: Set<CredentialHost>
  private var plain = HTTPFields()
  private var credentials: [Credential] = []
  /// The user name and password of the source's URL.
  private let userInformation: HTTPField?

  /// - Parameters:
  ///   - source: The URL of the source; nil for standard input. No server owns the credentials of a local one.
  ///   - hosts: Other servers that may get credentials.
  package init(of source: URL?, hosts: Set<CredentialHost> = []) {
    self.source = source.flatMap { ServerAddress($0) }
    self.hosts = hosts
    userInformation = source?.basicAuthorization
  }

  /// Adds fields. Credentials among them belong to the server of `owner`.
  package mutating func add(_ fields: HTTPFields, ownedBy owner: URL?) {
    let server = owner.flatMap { ServerAddress($0) }
    for field in fields {
      if field.isCredential {
        credentials.append(Credential(field: field, owner: server))
      } else {
        plain.append(field)
      }
    }
  }

  /// Adds the fields to a request that its server may get.
  package func apply(to request: inout FetchRequest) {
    var fields = plain
    fields += credentials(for: request.url)
    fields += request.headers
    request.headers = fields
    request.source = self
  }

  /// Returns the credentials that the server of `url` may get. `Authorization` of a field precedes that of a URL.
  fileprivate func credentials(for url: URL) -> HTTPFields {
    var fields = HTTPFields()
    for credential in credentials where isAllowed(url, from: credential.owner) {
      fields.append(credential.field)
    }
    if isAllowed(url, from: source), !fields.contains(.authorization),
      let field = url.basicAuthorization ?? userInformation
    {
      fields.append(field)
    }
    return fields
  }

  /// True if the server of `url` may get the credentials of the source.
  package func admitsCredentials(to url: URL) -> Bool { isAllowed(url, from: source) }

  fileprivate var hasCredentials: Bool { !credentials.isEmpty || userInformation != nil }

  private func isAllowed(_ url: URL, from owner: ServerAddress?) -> Bool {
    guard let server = ServerAddress(url) else { return false }
    if server == owner { return true }
    if owner?.isSecure == true, !server.isSecure { return false }
    return hosts.contains(CredentialHost(server.host))
      || hosts.contains(CredentialHost(server.host, port: server.port))
  }
}

extension FetchRequest {
  /// Returns the header fields to send to `hop`: the URL of the request, or one that a server has redirected it to.
  ///
  /// Credentials of `headers` go to the server of the request's URL, and those of `source` where its rule allows.
  package func fields(for hop: URL, cookies: CookieStore? = nil) -> HTTPFields {
    var fields = headers
    let isSameServer = ServerAddress(url) == ServerAddress(hop)
    if !isSameServer {
      fields.removeAll(where: \.isCredential)
      if let source { fields += source.credentials(for: hop) }
    } else if source == nil, !fields.contains(.authorization),
      let field = hop.basicAuthorization ?? url.basicAuthorization
    {
      fields.append(field)
    }
    if !fields.contains(.cookie), let value = cookies?.header(for: hop) {
      fields.append(HTTPField(name: .cookie, value: value))
    }
    return fields
  }

  /// True if the answer may be 304, without a body (RFC 9110 §13.1).
  package var isConditional: Bool { headers.contains(.ifNoneMatch) || headers.contains(.ifModifiedSince) }

  /// True if the source has credentials, and the server of `hop` gets none.
  package func withholdsCredentials(from hop: URL) -> Bool {
    guard !fields(for: hop).contains(where: \.isCredential) else { return false }
    return source?.hasCredentials
      ?? (headers.contains(where: \.isCredential) || url.basicAuthorization != nil)
  }

  /// Returns a request for the same resource, or a range of it, without the handlers of this one.
  package func again(range: ByteRange? = nil) -> FetchRequest {
    var copy = FetchRequest(url: url, range: range, headers: headers, purpose: purpose)
    copy.source = source
    copy.media = media
    return copy
  }
}

extension HTTPField {
  /// Returns a field that is a credential whatever its name: only the server of the source gets it, and the hosts named in
  /// `LoadingConfiguration.credentialHosts`.
  public static func secret(_ name: Name, _ value: String) -> HTTPField {
    var field = HTTPField(name: name, value: value)
    // The mark of sensitive values in HTTP/2 (RFC 7541 §7.1.3).
    field.indexingStrategy = .disallow
    return field
  }

  /// True for `Authorization`, `Proxy-Authorization`, `Cookie`, for names that end in `key`, `token`, `secret` or
  /// `password`, in any case, and for a field of `secret(_:_:)`.
  package var isCredential: Bool {
    indexingStrategy == .disallow
      || ["authorization", "cookie", "key", "token", "secret", "password"].contains {
        name.canonicalName.hasSuffix($0)
      }
  }
}

extension URL {
  /// The user name and password as a field of basic authentication (RFC 7617 §2); nil without a user name.
  fileprivate var basicAuthorization: HTTPField? {
    guard let user = user(percentEncoded: false) else { return nil }
    let secret = "\(user):\(password(percentEncoded: false) ?? "")"
    return HTTPField(
      name: .authorization, value: "Basic " + Data(secret.utf8).base64EncodedString())
  }

  /// The URL without user name and password.
  package var withoutUserInformation: URL {
    guard user(percentEncoded: true) != nil || password(percentEncoded: true) != nil else { return self }
    return URL(string: absoluteString.withoutUserInformation) ?? self
  }

  /// The URL for a log: without user name and password, with `…` for its query, which may be a credential, and without the
  /// contents of a `data:` URL, which may be a key.
  package var logText: String {
    if scheme?.lowercased() == "data" { return "data:" }
    let text = absoluteString.withoutUserInformation
    return query == nil ? text : text.prefix { $0 != "?" } + "?…"
  }
}

extension StringProtocol {
  /// The text with A to Z in lower case. No other letter changes: some letters beyond ASCII have one of ASCII in lower case.
  fileprivate var lowercasedASCII: String {
    String(decoding: utf8.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
  }
}
