internal import Foundation
package import Logging
package import ReelCore
package import ReelPlayback
package import ReelPool

extension FeedChunks {
  /// Measures the items that a walk visits or passes by. The others count as not measured.
  ///
  /// - Parameters:
  ///   - plan: The walk.
  ///   - feed: Its feed.
  ///   - fetcher: Gets the bytes, also those of local files.
  ///   - loading: Which rungs can be chosen, and limits.
  /// - Throws: `CancellationError` only; other errors are those of their items.
  package static func measure(
    _ plan: WalkPlan, of feed: Feed, fetcher: any Fetching,
    loading: LoadingConfiguration = LoadingConfiguration(), logger: Logger = Logger(label: "reel.replay")
  ) async throws -> FeedChunks {
    let indices = indices(of: plan, in: feed)
    var visited = Feed(name: feed.name)
    for index in indices {
      visited.append(feed.items[index].source) { $0.headers = feed.items[index].headers }
    }
    let measured = try await measure(visited, fetcher: fetcher, loading: loading, logger: logger)
    var items = [Result<ItemChunks, ReelError>](
      repeating: .failure(ReelError(.usage, "the walk does not visit the item")), count: feed.items.count)
    for (index, item) in zip(indices, measured.items) { items[index] = item }
    return FeedChunks(items)
  }

  /// True if all items of a feed are local files.
  package static func isLocal(_ feed: Feed) -> Bool { feed.items.allSatisfy(isLocal) }

  /// True if all items that a walk visits are local files, so that measuring them sends no requests.
  package static func isLocal(_ plan: WalkPlan, of feed: Feed) -> Bool {
    indices(of: plan, in: feed).allSatisfy { isLocal(feed.items[$0]) }
  }

  private static func isLocal(_ item: FeedItem) -> Bool {
    if case .url(let url) = item.source { url.isFileURL } else { false }
  }

  private static func indices(of plan: WalkPlan, in feed: Feed) -> [Int] {
    Set(WalkTimetable(plan).stops.map(\.index)).filter(feed.items.indices.contains).sorted()
  }
}
