internal import Foundation
internal import ReelCore

/// Limits the resources that a manifest may refer to. A manifest from the network can't refer to local files,
/// and other hosts get no credentials.
struct ConfinedFetcher: Fetching {
  let base: any Fetching
  /// The URL of the source; nil for standard input. Only a local one can refer to local files.
  let source: URL?

  /// The header fields that only the source's own host gets.
  private static let credentials: Set<String> = ["authorization", "cookie", "proxy-authorization"]

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let scheme = request.url.scheme?.lowercased() ?? ""
    // A data: URL accesses nothing else.
    guard ["http", "https", "data"].contains(scheme) || scheme == "file" && source?.isFileURL != false else {
      throw ReelError(
        .unsupported,
        scheme == "file"
          ? "a remote manifest refers to a local file"
          : "the scheme \(scheme.isEmpty ? "(none)" : scheme) is not supported",
        at: request.url.absoluteString)
    }
    guard request.url.port.map({ (1...65535).contains($0) }) ?? true else {
      throw ReelError(.badManifest, "the URL has no valid port", at: request.url.absoluteString)
    }
    var request = request
    if request.url.host != source?.host, source?.isFileURL == false {
      request.headers.removeAll { Self.credentials.contains($0.name.lowercased()) }
    }
    do {
      return try await base.fetch(request)
    } catch let error as ReelError where error.kind == .usage && request.url != source {
      // The URL comes from a manifest, so it is not a usage error.
      throw ReelError(.badManifest, error.reason, at: error.location, advice: error.advice)
    }
  }
}

/// Counts the bytes of response bodies that have arrived and have not been taken yet.
struct CountedFetcher: Fetching {
  let base: any Fetching
  let memory: LoadingMemory

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    var request = request
    request.recordHeld = { [memory] in memory.addInFlight($0) }
    return try await base.fetch(request)
  }
}
