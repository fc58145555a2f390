internal import Foundation
internal import ReelCore

/// Keeps what a manifest names within reach of where it came from: one that came over the network can't name local
/// files, and another host that it names gets no credentials.
struct ConfinedFetcher: Fetching {
  let base: any Fetching
  /// The URL of the source; nil for standard input. Only a local one can name local files.
  let source: URL?

  /// Fields that are meant for the source's own host.
  private static let credentials: Set<String> = ["authorization", "cookie", "proxy-authorization"]

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let scheme = request.url.scheme?.lowercased() ?? ""
    // A data: URL reaches nothing but itself.
    guard ["http", "https", "data"].contains(scheme) || scheme == "file" && source?.isFileURL != false else {
      throw ReelError(
        .unsupported,
        scheme == "file"
          ? "a manifest from the network names a local file"
          : "the scheme \(scheme.isEmpty ? "(none)" : scheme) is not supported",
        at: request.url.absoluteString)
    }
    guard request.url.port.map({ (1...65535).contains($0) }) ?? true else {
      throw ReelError(.badManifest, "a URL with no valid port", at: request.url.absoluteString)
    }
    var request = request
    if request.url.host != source?.host, source?.isFileURL == false {
      request.headers.removeAll { Self.credentials.contains($0.name.lowercased()) }
    }
    do {
      return try await base.fetch(request)
    } catch let error as ReelError where error.kind == .usage && request.url != source {
      // What a manifest asks for is not the user's mistake.
      throw ReelError(.badManifest, error.reason, at: error.location, advice: error.advice)
    }
  }
}
