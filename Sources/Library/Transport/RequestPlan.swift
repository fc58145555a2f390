import Foundation
import NIOHTTP1
import ReelCore

/// A `FetchRequest` on its way through redirects and retries.
struct RequestPlan {
  let method: HTTPMethod
  var url: URL
  var range: ByteRange?
  /// The validator that the resource must still have, for a part that continues an earlier one.
  var ifRange: String?
  private var fields: [HeaderField]
  /// True for whole manifests and sources of unknown kind.
  private let acceptsCompression: Bool

  init(_ request: FetchRequest) {
    method = request.method == .head ? .HEAD : .GET
    url = request.url
    range = request.range
    fields = request.headers
    acceptsCompression =
      request.range == nil && (request.purpose == .manifest || request.purpose == .source)
  }

  /// The plan for the rest of a body: `range` of the resource at `url`, where redirects had led.
  func continuing(at url: URL, range: ByteRange, ifRange: String?) -> RequestPlan {
    var copy = self
    if copy.url != url { copy.redirect(to: url) }
    copy.range = range
    copy.ifRange = ifRange
    return copy
  }

  /// Goes to another URL. Another server gets no credentials.
  mutating func redirect(to target: URL) {
    if !Self.isSameServer(url, target) {
      let secrets: Set = ["authorization", "cookie", "proxy-authorization"]
      fields.removeAll { secrets.contains($0.name.lowercased()) }
    }
    url = target
  }

  func headers(configuration: TransportConfiguration) -> HTTPHeaders {
    var headers = HTTPHeaders()
    headers.add(name: "User-Agent", value: configuration.userAgent)
    headers.add(name: "Accept", value: "*/*")
    for field in fields where !field.name.isEmpty {
      // A field of the caller replaces Reel's own; several fields of the caller with one name are all kept.
      if headers.contains(name: field.name),
        !fields.prefix(while: { $0 != field }).contains(where: { $0.isNamed(field.name) })
      {
        headers.remove(name: field.name)
      }
      headers.add(name: field.name, value: field.value)
    }
    // "identity" must be stated: without the field, the decompressor would request compression.
    let coding = acceptsCompression && range == nil ? "gzip, deflate" : "identity"
    headers.replaceOrAdd(name: "Accept-Encoding", value: coding)
    if let range { headers.replaceOrAdd(name: "Range", value: range.httpHeaderValue) }
    if let ifRange { headers.replaceOrAdd(name: "If-Range", value: ifRange) }
    if let user = url.user(percentEncoded: false), !headers.contains(name: "Authorization") {
      let secret = "\(user):\(url.password(percentEncoded: false) ?? "")"
      headers.add(name: "Authorization", value: "Basic " + Data(secret.utf8).base64EncodedString())
    }
    if !headers.contains(name: "Cookie"), let cookies = configuration.cookies?.header(for: url) {
      headers.add(name: "Cookie", value: cookies)
    }
    return headers
  }

  // MARK: - Private

  /// True if the credentials for `url` may also be sent to `other`: the same host and port, and no loss of TLS.
  private static func isSameServer(_ url: URL, _ other: URL) -> Bool {
    guard url.host()?.lowercased() == other.host()?.lowercased() else { return false }
    switch (url.scheme?.lowercased(), other.scheme?.lowercased()) {
    case ("https", "http"): return false
    case ("http", "https"): return (url.port ?? 80) == 80 && (other.port ?? 443) == 443
    case ("https", _): return (url.port ?? 443) == (other.port ?? 443)
    default: return (url.port ?? 80) == (other.port ?? 80)
    }
  }
}

extension HeaderField {
  fileprivate func isNamed(_ other: String) -> Bool { name.lowercased() == other.lowercased() }
}
