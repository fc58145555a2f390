internal import Foundation
package import Logging
package import ReelCore
internal import ReelFFmpeg
package import ReelPlayback
package import ReelPool

/// The chunks of all items of a feed, as they are measured before a walk, outside of simulated time.
///
/// - A manifest's chunks are its segments: HLS with or without a multivariant playlist, and DASH. Their sizes are the
///   stated byte ranges, or else what `HEAD` or the answer itself says.
/// - A media file's chunks are parts between key frames that are at least a second apart. The whole file is read.
///
/// Separate audio does not count, and neither do keys: papers have one stream of chunks for each item. Live items can't
/// be measured.
package struct FeedChunks: Sendable {
  /// For each item of the feed, its chunks or the reason why there are none.
  package let items: [Result<ItemChunks, ReelError>]

  package init(_ items: [Result<ItemChunks, ReelError>]) { self.items = items }

  /// The number of items that are measured at a time.
  package static let concurrency = 4

  /// Measures all items. Items with the same source and headers are measured once.
  ///
  /// - Parameters:
  ///   - feed: The feed.
  ///   - fetcher: Gets the bytes, also those of local files.
  ///   - loading: Which rungs can be chosen, and limits. An item's headers replace those of the configuration.
  ///   - limit: The items that are measured at a time.
  ///   - progress: Called with the number of items that are done, on any thread.
  /// - Throws: `CancellationError` only; other errors are those of their items.
  package static func measure(
    _ feed: Feed, fetcher: any Fetching, loading: LoadingConfiguration = LoadingConfiguration(),
    concurrently limit: Int = Self.concurrency, logger: Logger = Logger(label: "reel.replay"),
    progress: @Sendable (Int) -> Void = { _ in }
  ) async throws -> FeedChunks {
    var places: [Key: Int] = [:]
    var sources: [Key] = []
    let itemPlaces = feed.items.map { item -> Int in
      let key = Key(source: item.source, headers: item.headers)
      if let place = places[key] { return place }
      sources.append(key)
      places[key] = sources.count - 1
      return sources.count - 1
    }
    var found = [Result<ItemChunks, ReelError>?](repeating: nil, count: sources.count)
    try await withThrowingTaskGroup(of: (Int, Result<ItemChunks, ReelError>).self) { group in
      var waiting = sources.enumerated().makeIterator()
      func begin() {
        guard let (place, key) = waiting.next() else { return }
        group.addTask {
          var loading = loading
          if !key.headers.isEmpty { loading.headers = key.headers }
          return (place, try await chunks(of: key.source, fetcher, loading, logger))
        }
      }
      for _ in 0..<max(limit, 1) { begin() }
      while let (place, result) = try await group.next() {
        found[place] = result
        progress(itemPlaces.count { found[$0] != nil })
        begin()
      }
    }
    try Task.checkCancellation()
    return FeedChunks(
      itemPlaces.map { found[$0] ?? .failure(ReelError(.internalFault, "an item was not measured")) })
  }

  /// The chunks of an item; nil if it can't be measured or is outside the feed.
  package subscript(index: Int) -> ItemChunks? {
    items.indices.contains(index) ? try? items[index].get() : nil
  }

  /// The items that can't be measured: their indices, and the reasons.
  package var failures: [(index: Int, error: ReelError)] {
    items.enumerated().compactMap { index, item in
      if case .failure(let error) = item { (index, error) } else { nil }
    }
  }

  // MARK: - Private

  private struct Key: Hashable, Sendable {
    let source: MediaSource
    let headers: [HeaderField]
  }

  /// Throws `CancellationError` only.
  private static func chunks(
    of source: MediaSource, _ fetcher: any Fetching, _ loading: LoadingConfiguration, _ logger: Logger
  ) async throws -> Result<ItemChunks, ReelError> {
    do {
      return .success(
        try await ChunkMeasurement(source, fetcher: fetcher, loading: loading, logger: logger).run())
    } catch let error as ReelError where error.kind != .cancelled {
      return .failure(error.located(at: source.name))
    } catch {
      throw CancellationError()
    }
  }
}
