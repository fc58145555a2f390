internal import Foundation
package import Logging
internal import ReelCore
internal import ReelPlayback
internal import ReelSimulation
internal import ReelSources

/// A look of one viewer at one source, for the viewers that count and those that decode.
package struct ViewerLook: Sendable {
  /// The index of the source in the plan.
  let source: Int
  /// The id of the session.
  let id: String
  let access: ViewerAccess
  let settings: ViewerSettings
  /// The time of the clock at which the look ends.
  let end: Duration
  let logger: Logger
  /// Called with each event and its time, under a lock.
  let report: @Sendable (ViewerEvent.Kind, Duration) -> Void

  package init(
    at source: Int, session id: String, access: ViewerAccess, settings: ViewerSettings, until end: Duration,
    logger: Logger, report: @escaping @Sendable (ViewerEvent.Kind, Duration) -> Void
  ) {
    (self.source, self.id) = (source, id)
    (self.access, self.settings, self.end) = (access, settings, end)
    (self.logger, self.report) = (logger, report)
  }

  var clock: any MonotonicClock { settings.player.clock }

  var media: MediaSource { access.source(source) }

  /// Returns what sends the requests of the look.
  ///
  /// - Parameters:
  ///   - conditions: What the player knows, for CMCD.
  ///   - report: Called with each transfer that has ended, and each attempt that failed.
  func fetcher(
    conditions: @escaping @Sendable (RequestedMedia.Tracks?) -> CMCDFetcher.Conditions,
    report: @escaping @Sendable (ViewerEvent.Kind) -> Void
  ) -> any Fetching {
    var fetcher = access.fetcher
    if let transmission = settings.cmcd {
      // The same for all viewers, and without the query, which may have a secret.
      var hash = FNV1a()
      hash.combine(String(media.name.prefix { $0 != "?" }))
      fetcher = CMCDFetcher(
        fetcher, transmission, session: id, content: String(hash.value, radix: 16), conditions: conditions)
    }
    return ReportingFetcher(base: fetcher, report: report)
  }
}

/// The events of a look in their order, and their sums. Kept under the lock of the look.
struct ViewerAccount: Sendable {
  var sums: ViewerSums
  private let look: ViewerLook
  private let began: Duration
  /// The manifests that were loaded. A later request for one of them is a reload, of whose failures readers tell nothing.
  private var manifests: Set<URL> = []

  init(_ look: ViewerLook, decodes: Bool) {
    self.look = look
    began = look.clock.now
    sums = ViewerSums(source: look.source, decodes: decodes, began: began)
  }

  /// The time since the beginning of the look.
  func elapsed(at time: Duration) -> Duration { time - began }

  mutating func add(_ event: ViewerEvent.Kind, at time: Duration) {
    sums.add(event, at: time)
    look.report(event, time)
    guard case .request(let metrics) = event, [.manifest, .source].contains(metrics.purpose) else { return }
    switch metrics.outcome {
    case .completed: manifests.insert(metrics.url)
    case .failed(let error) where manifests.contains(metrics.url):
      add(.failure(error, .handled(.retried)), at: time)
    case .failed, .cancelled: break
    }
  }

  /// Reports the beginning of the look.
  func begin() { look.report(.began, began) }

  /// Reports the end of the look.
  mutating func end(_ ending: ViewerSums.Ending, at time: Duration) {
    sums.ending = ending
    sums.times = sums.times.closed(at: time)
    look.report(.left(sums), time)
  }
}

/// Reports the requests of a viewer.
private struct ReportingFetcher: Fetching {
  let base: any Fetching
  let report: @Sendable (ViewerEvent.Kind) -> Void

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    var request = request
    let url = request.url
    request.addReport { [report] metrics in
      // Without the parameters that are added further on.
      var metrics = metrics
      metrics.url = url
      report(.request(metrics))
    }
    request.addFailedAttempt { [report] in report(.failure($0, .repeated(status: $1))) }
    return try await base.fetch(request)
  }
}
