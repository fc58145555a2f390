package import HTTPTypes
package import Logging
package import ReelCore
internal import ReelPlayback
package import ReelSources

/// How one viewer reaches its sources.
package struct ViewerAccess: Sendable {
  /// Fetches everything for this viewer, with the connections and the link that it has to itself.
  package var fetcher: any Fetching
  /// Returns a source by its index in the plan, as this viewer requests it.
  package var source: @Sendable (Int) -> MediaSource
  /// Header fields for all requests of this viewer, as `PlayerItem.headers`.
  package var headers: HTTPFields = [:]

  package init(
    fetcher: any Fetching, headers: HTTPFields = [:], source: @escaping @Sendable (Int) -> MediaSource
  ) {
    (self.fetcher, self.headers, self.source) = (fetcher, headers, source)
  }
}

/// The viewers of a plan: they come, watch, leave and come again until the run is over.
package struct ViewerRun: Sendable {
  /// - Parameters:
  ///   - access: Called once for each viewer when it comes.
  ///   - report: Called with each event, on any thread. Must not block.
  package init(
    _ plan: ViewerPlan, settings: ViewerSettings, logger: Logger,
    access: @escaping @Sendable (_ viewer: Int) -> ViewerAccess,
    report: @escaping @Sendable (ViewerEvent) -> Void
  ) {
  }

  /// Runs until the duration of the plan is over, or the task is cancelled. Every look has then been reported to its end.
  package func run() async {}
}
