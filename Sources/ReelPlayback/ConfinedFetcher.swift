internal import Foundation
internal import ReelCore

/// Keeps what a manifest names within reach of where it came from: one that came over the network can't name local
/// files.
struct ConfinedFetcher: Fetching {
  let base: any Fetching
  /// True where the source itself is a local file or standard input.
  let allowsFiles: Bool

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let scheme = request.url.scheme?.lowercased() ?? ""
    guard ["http", "https"].contains(scheme) || scheme == "file" && allowsFiles else {
      throw ReelError(
        .unsupported,
        scheme == "file"
          ? "a manifest from the network names a local file"
          : "the scheme \(scheme.isEmpty ? "(none)" : scheme) is not supported",
        at: request.url.absoluteString)
    }
    return try await base.fetch(request)
  }
}
