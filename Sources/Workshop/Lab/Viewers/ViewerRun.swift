internal import Foundation
package import HTTPTypes
package import Logging
package import ReelCore
internal import ReelPlayback
package import ReelSources

/// How one viewer reaches its sources.
package struct ViewerAccess: Sendable {
  /// Fetches everything for this viewer, with the connections and the link that it has to itself.
  package var fetcher: any Fetching
  /// Header fields for all requests of this viewer, as `PlayerItem.headers`.
  package var headers: HTTPFields
  /// Returns a source by its index in the plan, as this viewer requests it.
  package var source: @Sendable (Int) -> MediaSource

  package init(
    fetcher: any Fetching, headers: HTTPFields = [:], source: @escaping @Sendable (Int) -> MediaSource
  ) {
    (self.fetcher, self.headers, self.source) = (fetcher, headers, source)
  }
}

/// The viewers of a plan: they come, watch, leave and come again until the run is over.
package struct ViewerRun: Sendable {
  private let plan: ViewerPlan
  private let settings: ViewerSettings
  private let logger: Logger
  private let access: @Sendable (Int) -> ViewerAccess
  private let report: @Sendable (ViewerEvent) -> Void

  /// The time after a failure until a viewer watches again.
  private static let pause = Duration.seconds(5)
  /// The least time from the beginning of a look that was played to its end to the next one.
  private static let leastLength = Duration.seconds(1)

  /// - Parameters:
  ///   - access: Called once for each viewer when it comes.
  ///   - report: Called with each event, on any thread and under a lock: it must not block, and may take only locks of
  ///     the rank `leaf`.
  package init(
    _ plan: ViewerPlan, settings: ViewerSettings, logger: Logger,
    access: @escaping @Sendable (_ viewer: Int) -> ViewerAccess,
    report: @escaping @Sendable (ViewerEvent) -> Void
  ) {
    (self.plan, self.settings, self.logger) = (plan, settings, logger)
    (self.access, self.report) = (access, report)
  }

  private var clock: any MonotonicClock { settings.player.clock }

  /// Runs until the duration of the plan is over, or the task is cancelled. Every look has then been reported to its end.
  package func run() async {
    let start = clock.now
    await withDiscardingTaskGroup { group in
      for viewer in plan.viewers {
        let arrival = plan.arrival(of: viewer)
        guard arrival < plan.duration, await isThere(by: start + arrival) else { break }
        group.addTask { await self.watch(viewer, since: start) }
      }
    }
  }

  // MARK: - Private

  /// A viewer from its coming to the end of the run.
  private func watch(_ viewer: Int, since start: Duration) async {
    let (access, end) = (access(viewer), start + plan.duration)
    var number = 0
    while clock.now < end, !Task.isCancelled {
      let session = plan.session(number, of: viewer)
      await watch(session, access, since: start, until: min(session.stay.map { clock.now + $0 } ?? end, end))
      number += 1
    }
  }

  private func watch(
    _ session: ViewerPlan.Session, _ access: ViewerAccess, since start: Duration, until leaving: Duration
  ) async {
    let id = UUID().uuidString.lowercased()
    for (index, look) in session.looks.enumerated() {
      let end = min(look.dwell.map { clock.now + $0 } ?? leaving, leaving)
      let viewerLook = ViewerLook(
        at: look.source, session: id, access: access, settings: settings, until: end, logger: logger
      ) { [report] event, time in
        report(
          ViewerEvent(
            viewer: session.viewer, session: session.number, look: index, time: time - start, event))
      }
      let (began, decodes) = (clock.now, plan.decodes(session.viewer))
      let ending = decodes ? await DecodedViewer(viewerLook).run() : await Viewer(viewerLook).run()
      switch ending {
      case .left: break
      // The last frame stays on show until the viewer swipes on.
      case .played where look.dwell != nil: guard await isThere(by: end) else { return }
      // One without length, or nearly so, is not repeated without a pause.
      case .played: guard await isThere(by: min(began + Self.leastLength, leaving)) else { return }
      case .failed: guard await isThere(by: min(clock.now + Self.pause, end)) else { return }
      }
      guard clock.now < leaving, !Task.isCancelled else { return }
    }
  }

  /// Waits for a time. Returns false if the task is cancelled before.
  private func isThere(by time: Duration) async -> Bool {
    let rest = time - clock.now
    if rest <= .zero { return true }
    return (try? await clock.sleep(for: rest)) != nil
  }
}
