import Foundation
import HTTPTypes
import Logging
import ReelCore
import ReelLab
import ReelPlayback
import ReelPool
import ReelSimulation
import ReelSources
import ReelTransport

/// The viewers of a run: what each of them reaches its sources with, and what they report.
final class ViewerCrowd: Sendable {
  let settings: ViewerSettings
  let tally: ViewersTally
  private let sources: ViewerSources
  private let transport: TransportConfiguration
  /// By viewer; empty if no links are modelled.
  private let links: [LinkSpec]
  private let headers: HTTPFields
  private let parameters: [QueryParameter]
  private let tokens: [String]
  private let admission: HostAdmission
  private let logger: Logger
  private let keepsLines: Bool
  private let state = Locked(State())

  /// Coarser than that of a single player: most of the processor time of a viewer with a link is that of timers.
  private static let linkTick = Duration.milliseconds(5)

  private struct State {
    /// The lines of results that are not written yet.
    var lines: [UInt8] = []
    var firstError: ReelError?
    /// Whether this machine was full in the last second.
    var isMachineFull = false
  }

  init(
    _ command: ViewersCommand, _ sources: ViewerSources, _ plan: ViewerPlan, logger: Logger
  ) throws {
    var player = PlayerConfiguration()
    player.loading = try command.options.loading()
    // Reading a file counts like a request.
    player.loading.fetchesFiles = true
    // Each viewer has its own.
    headers = player.loading.headers
    player.loading.headers = [:]
    var settings = try ViewerSettings(player, model: try command.model())
    if command.options.bandwidth != nil { settings.player.adaptsBitRate = command.options.adaptsBitRate }
    settings.cmcd = command.cmcd
    self.settings = settings
    var transport = try command.options.transportConfiguration(limitsWaits: true)
    // A viewer whose buffer is full holds a transfer back most of the time.
    transport.readAheadByteCount = 8 << 10
    self.transport = transport
    let order = plan.order(for: "link")
    links = try command.linkMix()?.links(of: order, seed: command.seed) ?? []
    parameters = try command.parameters()
    tokens =
      try command.tokens.map { path throws(ReelError) in
        try ViewerValues.tokens(path: path, count: command.viewers)
      } ?? []
    admission = HostAdmission(
      named: command.mayLoad, shard: try command.shardSpec().map { ($0.index, $0.count) } ?? (0, 1))
    keepsLines = try command.resultsPath() != nil
    tally = ViewersTally(
      ViewersSummary(viewers: Array(plan.viewers).count, sources: sources.entries.count),
      end: plan.duration)
    (self.sources, self.logger) = (sources, logger)
  }

  /// Why the run must end; nil for no reason.
  var refusal: ReelError? { admission.refusal }

  /// The first error, whatever followed it.
  var firstError: ReelError? { state.withLock { $0.firstError } }

  /// Returns how a viewer reaches its sources.
  func access(of viewer: Int) -> ViewerAccess {
    let values = values(of: viewer)
    var fetcher: any Fetching = TransportFetcher(
      configuration: transport, connections: .own,
      admission: { [admission] (host, address) throws(ReelError) in
        try admission.admit(viewer, to: host, isPrivate: address?.isPrivate ?? false)
      }, recordRetryAfter: nil, logger: logger)
    if !parameters.isEmpty { fetcher = QueryFetcher(fetcher, parameters, for: values) }
    if !links.isEmpty {
      fetcher = ThrottledFetcher(fetcher, link: links[viewer], tick: Self.linkTick)
    }
    return ViewerAccess(fetcher: fetcher, headers: values.filled(headers)) { [sources] in
      sources.entries[$0].source
    }
  }

  /// Counts an event, and keeps the line of a view that is over.
  func record(_ event: ViewerEvent) {
    tally.record(event)
    switch event.kind {
    case .failure(let error, _): keep(error, of: event.viewer)
    case .left(let sums):
      // A source without media fails although all was loaded.
      if case .failed(let error) = sums.ending { keep(error, of: event.viewer) }
      guard keepsLines else { return }
      let line = line(of: event, sums)
      state.withLock { $0.lines += line }
    default: break
    }
  }

  /// Takes the load of the last second, for the lines of views.
  func note(_ load: MachineLoad) { state.withLock { $0.isMachineFull = load.isFull } }

  /// Returns the lines of views that are over, since the last call.
  func takeLines() -> [UInt8] {
    state.withLock { state in
      defer { state.lines = [] }
      return state.lines
    }
  }

  // MARK: - Private

  private func keep(_ error: ReelError, of viewer: Int) {
    guard firstError == nil else { return }
    let redacted = values(of: viewer).redacted(error)
    state.withLock { $0.firstError = $0.firstError ?? redacted }
  }

  private func values(of viewer: Int) -> ViewerValues {
    ViewerValues(number: viewer + 1, token: tokens.isEmpty ? nil : tokens[viewer])
  }

  private func line(of event: ViewerEvent, _ sums: ViewerSums) -> [UInt8] {
    var failure: ReelError?
    if case .failed(let error) = sums.ending { failure = values(of: event.viewer).redacted(error) }
    let entry = sources.entries[sums.source]
    let waited = sums.times[.stalled] + sums.times[.seeking]
    let view: JSONFields = [
      "viewer": event.viewer + 1, "session": event.session + 1, "number": event.look + 1,
      "stalls": sums.stallCount, "waited_ms": waited, "played_ms": sums.times[.playing],
      "requests": sums.requestCount, "bytes": sums.byteCount, "errors": sums.failureCount,
      "live_latency_ms": sums.latency, "decoded": sums.decodes ? true : nil,
      "machine_full": state.withLock(\.isMachineFull) ? true : nil,
    ]
    let body: JSONFields = [
      "startup": sums.start.map { start -> JSONFields in ["total_ms": start] }, "view": view,
    ]
    let text = (try? JSONLine.string(body)) ?? "{}"
    return ResultLine.text(
      url: entry.text, index: sums.source + 1, line: 0, host: Batch.host(of: entry.source),
      finishedAt: .now, seconds: sums.times.total / .seconds(1), attempts: 1, success: .watched,
      error: failure, body: RawJSON.members(of: Array(text.utf8)[...]) ?? [], fields: [])
  }
}
