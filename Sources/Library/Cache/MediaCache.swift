public import Foundation
internal import HTTPTypes
public import Logging
public import ReelCore

/// A fetcher that keeps what another one fetches in a folder.
public final class MediaCache: Fetching, ConnectionOpening {
  private let base: any Fetching

  /// Creates a cache.
  public init(
    at folder: URL, byteLimit: Int64, in front: any Fetching,
    assumedFreshness: Duration = .seconds(86_400), logger: Logger = Logger(label: "reel.cache")
  ) {
    base = front
  }

  public func openConnection(to url: URL) { (base as? any ConnectionOpening)?.openConnection(to: url) }

  public func fetch(_ request: FetchRequest) async throws -> FetchResponse { try await base.fetch(request) }
}

extension MediaCache: MediaStoring {
  package func holds(_ request: FetchRequest) -> Bool { false }
  package var storedByteCount: Int64 { 0 }
  package func trim(toByteCount byteCount: Int64) async {}
}
