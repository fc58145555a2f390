internal import Foundation
internal import HTTPTypes
internal import ReelCore

/// A request whose answer may be in the folder.
struct StorableRequest: Sendable {
  /// As the fetcher behind sends it: a server may vary by any field.
  var request: FetchRequest
  let key: EntryKey
  let server: ServerAddress

  /// Nil for a request whose answer must not be stored, and for one in which a program itself steers caches.
  ///
  /// - Parameter userAgent: What the fetcher behind sends unless the request says otherwise.
  init?(_ request: FetchRequest, userAgent: String?) {
    let steering: Set = [
      "cache-control", "pragma", "if-match", "if-none-match", "if-modified-since", "if-range", "range",
    ]
    guard request.method == .get, request.storeUse?.isBypassed != true, request.purpose != .key,
      request.purpose != .clock,
      let server = ServerAddress(request.url), request.url.user() == nil, request.url.password() == nil,
      !request.headers.contains(where: { $0.isCredential || steering.contains($0.name.canonicalName) })
    else { return nil }
    self.request = request
    self.server = server
    key = EntryKey(of: request.url)
    if let userAgent, !request.headers.contains(.userAgent) { self.request.headers[.userAgent] = userAgent }
  }
}

extension EntryKey {
  /// The name of the entry of a resource.
  init(of url: URL) { self.init(hashing: [String(url.absoluteString.prefix { $0 != "#" })]) }
}
