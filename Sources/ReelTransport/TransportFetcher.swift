public import Foundation
public import Logging
public import ReelCore

/// Gets bytes over HTTP and HTTPS, from local files and out of `data:` URLs.
///
/// All fetchers of a process share one pool of connections for each connect time-out, so a connection that
/// one of them has opened serves the others. HTTP/2 is used where a server offers it over TLS.
///
/// A request that fails in a way that can pass is sent again by the `RetryPolicy`; a transfer that breaks
/// goes on at the byte where it broke, unseen by the one who reads its body.
public final class TransportFetcher: Fetching, ConnectionOpening {
  private let http: HTTPFetcher
  private let file: FileFetcher

  public init(
    configuration: TransportConfiguration = TransportConfiguration(),
    logger: Logger = Logger(label: "reel.transport")
  ) {
    http = HTTPFetcher(configuration: configuration, logger: logger)
    file = FileFetcher(logger: logger)
  }

  public func openConnection(to url: URL) {
    if ["http", "https"].contains(url.scheme?.lowercased()) { http.openConnection(to: url) }
  }

  /// Sends the request by the scheme of its URL: `http`, `https`, `file` or `data`.
  ///
  /// - Throws: `ReelError` with the URL as its location, or `CancellationError`:
  ///   - `server` for an answer that is no success, `404 Not Found`, and for redirects that lead nowhere;
  ///   - `network` where no connection could be made or it broke more often than is retried;
  ///   - `timedOut` with the limit that was reached;
  ///   - `noSuchFile`, `badMedia` (a directory) for a local file;
  ///   - `unsupported` for another scheme; `usage` for a URL or a header field that can't be sent.
  public func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    if let range = request.range, range.offset < 0 || range.length.map({ $0 <= 0 }) ?? false {
      throw ReelError(
        .usage, "no part of a resource: offset \(range.offset), length \(range.length ?? 0)",
        at: request.url.absoluteString)
    }
    switch request.url.scheme?.lowercased() {
    case "http", "https": return try await http.fetch(request)
    case "file": return try await file.fetch(request)
    case "data": return try await DataFetcher().fetch(request)
    case let scheme:
      throw ReelError(
        .unsupported, scheme.map { "the scheme \($0): is not served" } ?? "a URL without a scheme",
        at: request.url.absoluteString, advice: "use http:, https: or file:")
    }
  }
}
