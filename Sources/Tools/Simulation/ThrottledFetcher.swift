public import Foundation
internal import HTTPTypes
public import ReelCore

/// Fetches through another fetcher, and delivers the bytes no sooner than a modelled link would.
///
/// The link applies to `http`, `https` and `file` URLs, but not to `data` URLs. A new connection takes one
/// round trip, with `https` two; the first byte of an answer takes another one; and all transfers share the
/// rate of the link. A redirect costs a further round trip. Like the real transport, the fetcher opens an
/// additional connection ahead for each request for a source or manifest. Slow start, certificates and name
/// look-ups are modelled if the link states them (`tcp`, `tls` and `dns`); loss is not. With `dns`, addresses
/// cost no look-up, and all local files count as one host name.
///
/// **In real time**, an answer that takes longer than it would over the link is delivered when it arrives.
///
/// **In a simulation**, the simulation pauses while the real bytes are fetched, so their real timing has no
/// effect:
/// - A failing request fails one round trip after it was sent, however often the real fetcher retried it.
/// - With a limit, an answer or the next 64 KiB that do not arrive in time are an error of kind `timedOut`. Later
///   requests for the same URL fail with the same error, after that time.
/// - The number of bytes before a failure is repeatable if the server closed the connection, but not if it reset it.
public final class ThrottledFetcher: Fetching, ConnectionOpening {
  package let link: LinkSpec

  private let base: any Fetching
  private let clock: any MonotonicClock
  /// Nil in real time.
  private let simulation: SimulatedRuntime?
  private let scheduler: LinkScheduler
  private let limit: Duration?
  /// Nil if files are read each time.
  private let files: FileAnswers?
  /// The errors of the URLs that were not answered within the limit.
  private let overdue = Locked<[URL: ReelError]>([:])
  /// What servers do besides sending bytes.
  private let servers: LinkServers?

  /// A fetcher over a link in real time.
  ///
  /// - Parameters:
  ///   - base: The fetcher that gets the real bytes.
  ///   - link: The rate and the round-trip time of the link.
  public convenience init(_ base: any Fetching, link: LinkSpec) {
    self.init(base, link: link, tick: Self.tick)
  }

  /// A fetcher over a link that delays by a clock which advances by itself.
  ///
  /// - Parameter tick: Bytes that arrive within this time are delivered together. A longer one takes less processor time.
  package convenience init(
    _ base: any Fetching, link: LinkSpec, clock: any MonotonicClock = SystemMonotonicClock(),
    tick: Duration
  ) {
    self.init(base, link: link, clock: clock, simulation: nil, tick: tick)
  }

  /// A fetcher over a link in a simulation.
  ///
  /// - Parameters:
  ///   - base: The fetcher that gets the real bytes.
  ///   - link: The rate and the round-trip time of the link.
  ///   - simulation: The simulation, which pauses while real bytes are fetched.
  ///   - limit: The longest real time to wait for an answer, or for the next 64 KiB of a body; `nil` for no limit.
  public convenience init(
    _ base: any Fetching, link: LinkSpec, in simulation: SimulatedRuntime, limit: Duration? = nil
  ) {
    self.init(base, link: link, clock: simulation, simulation: simulation, limit: limit)
  }

  /// A fetcher over a link in a simulation, with servers that wait, redirect and close connections.
  package convenience init(
    _ base: any Fetching, link: LinkSpec, in simulation: SimulatedRuntime, limit: Duration?,
    servers: LinkServers
  ) {
    self.init(
      base, link: link, clock: simulation, simulation: simulation, limit: limit, servers: servers)
  }

  /// A fetcher over a link in a simulation, which reads local files only once.
  package convenience init(
    _ base: any Fetching, link: LinkSpec, in simulation: SimulatedRuntime, limit: Duration?,
    files: FileAnswers?
  ) {
    self.init(base, link: link, clock: simulation, simulation: simulation, limit: limit, files: files)
  }

  private init(
    _ base: any Fetching, link: LinkSpec, clock: any MonotonicClock, simulation: SimulatedRuntime?,
    tick: Duration = .zero, limit: Duration? = nil, files: FileAnswers? = nil, servers: LinkServers? = nil
  ) {
    self.servers = servers
    self.base = base
    self.limit = limit
    self.files = files
    self.link = link
    self.clock = clock
    self.simulation = simulation
    scheduler = LinkScheduler(LinkModel(link, zero: clock.now), clock: clock, tick: tick)
  }

  /// Opens a modelled connection to the host of `url`, unless one is free or being opened.
  public func openConnection(to url: URL) {
    guard let host = LinkHost(url) else { return }
    scheduler.withModel { $0.openAhead(to: host, at: clock.now) }
    if link.features.contains(.tls) { scheduler.advance() }
  }

  /// The number of transfers in progress.
  package var transferCount: Int { scheduler.transferCount }

  /// Fetches through the base fetcher, and returns when the modelled link would deliver the first byte.
  public func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    guard let host = LinkHost(request.url) else { return try await fetchBeside(request) }
    try Task.checkCancellation()
    let began = clock.now
    var departure = scheduler.withModel { model in
      let departure = model.depart(to: host, at: began)
      // An additional connection, because the request itself has taken one.
      if request.purpose == .source || request.purpose == .manifest {
        model.openAhead(to: host, at: began)
      }
      return departure
    }
    if link.features.contains(.tls) { departure = try await settled(departure) }
    servers?.onDeparture(request, departure.time)
    var metrics = RequestMetrics(url: request.url, purpose: request.purpose, requestCount: 1)
    metrics.reusedConnection = departure.isReused
    var real = request
    // The metrics of the real request are not those of the link, and have real instead of simulated times.
    real.report = nil
    if simulation != nil { real.withholdRealEvents() }
    let (answer, file): (FetchResponse, FileAnswers.Body?)
    do {
      (answer, file) = try await fetchFileOrForReal(real)
    } catch {
      let failure = error as? ReelError
      metrics.status = failure?.status
      metrics.outcome = RequestMetrics.Outcome(.failure(error))
      let keeps = failure?.kind == .server
      let patience = failure?.kind == .timedOut && simulation != nil ? limit : nil
      do { try await wait(until: departure.time + (patience ?? departure.roundTrip)) } catch {
        end(departure, keeps: false)
        request.report?(metrics)
        throw error
      }
      end(departure, keeps: keeps)
      request.report?(metrics)
      throw error
    }
    metrics.requestCount = answer.requestCount
    let behaviour = servers?.behaviour(request, answer)
    var last = host
    for hop in behaviour?.hops ?? (answer.url == request.url ? [] : [answer.url]) {
      guard let next = LinkHost(hop) else { continue }
      departure = try await follow(departure, from: last, to: next)
      last = next
      metrics.redirectCount += 1
      metrics.requestCount = max(metrics.redirectCount + 1, answer.requestCount)
      metrics.reusedConnection = departure.isReused && metrics.reusedConnection ?? true
    }
    if host.isRemote {
      let isPart = answer.bodyByteCount != nil && answer.bodyByteCount != answer.resourceByteCount
      metrics.status = request.range != nil && (isPart || answer.bodyOffset > 0) ? 206 : 200
    }
    if simulation == nil { metrics.failedAttemptCount = metrics.requestCount - metrics.redirectCount - 1 }
    let readyAt = departure.time + departure.roundTrip + (behaviour?.wait ?? .zero)
    let transfer = LinkedTransfer(
      scheduler, departure: departure, readyAt: readyAt, began: began, metrics: metrics,
      keepsConnection: behaviour?.closesConnection != true, report: request.report)
    if request.method == .head {
      transfer.finish(nil)
    } else {
      supply(transfer, with: answer.body, file: file, of: request.url)
    }
    do {
      try await wait(until: readyAt)
      try Task.checkCancellation()
    } catch {
      transfer.cancel()
      throw error
    }
    scheduler.advance()
    var response = answer
    response.body = FetchBody(onEnd: { _ in transfer.cancel() }) { try await transfer.next() }
    return response
  }

  // MARK: - Private

  /// The usual tick in real time.
  private static let tick = Duration.microseconds(500)
  /// In a simulation, the number of bytes of the real body that are fetched at a time.
  private static let pieceByteCount = 64 << 10

  private func fetchForReal(_ request: FetchRequest) async throws -> FetchResponse {
    guard let simulation else { return try await base.fetch(request) }
    if let error = overdue.withLock({ $0[request.url] }) { throw error }
    return try Self.standStill(simulation, for: request.url, within: limit, overdue) { [base] in
      try await base.fetch(request)
    }
  }

  /// Returns a file that was read before, or a real answer.
  private func fetchFileOrForReal(
    _ request: FetchRequest
  ) async throws -> (FetchResponse, FileAnswers.Body?) {
    if let (head, body) = files?.answer(to: request) { return (head, body) }
    let answer = try await fetchForReal(request)
    return (answer, files?.record(answer, to: request))
  }

  /// Fetches a URL that the link does not apply to.
  private func fetchBeside(_ request: FetchRequest) async throws -> FetchResponse {
    guard let simulation else { return try await base.fetch(request) }
    var real = request
    real.withholdRealEvents()
    let (url, limit, overdue) = (request.url, limit, overdue)
    return try await fetchForReal(real).wrappingBody { body in
      try Self.standStill(simulation, for: url, within: limit, overdue) { try await body.next() }
    }
  }

  /// Blocks, and so pauses the simulation. Static, because a transfer that calls it must not retain the
  /// fetcher, whose scheduler retains the transfer.
  private static func standStill<Success: Sendable>(
    _ simulation: SimulatedRuntime, for url: URL, within limit: Duration?,
    _ overdue: Locked<[URL: ReelError]>,
    _ body: @escaping @Sendable () async throws -> Success
  ) throws -> Success {
    do { return try simulation.outside(within: limit, body) } catch let error as ReelError
      where error.kind == .timedOut && limit != nil
    {
      let error = error.located(at: url.absoluteString)
      overdue.withLock { $0[url] = error }
      throw error
    }
  }

  /// A part of a real body, and how the body ends after it.
  private struct Piece: Sendable {
    var bytes: [UInt8] = []
    /// Nil if more follows.
    var ending: Result<Void, any Error>?
  }

  /// Returns the next bytes of a real body: at least `pieceByteCount`, or the rest.
  private static func piece(of body: FetchBody) async -> Piece {
    var piece = Piece()
    do {
      while piece.bytes.count < pieceByteCount {
        guard let chunk = try await body.next() else {
          piece.ending = .success(())
          break
        }
        piece.bytes.append(contentsOf: chunk)
      }
    } catch {
      piece.ending = .failure(error)
    }
    return piece
  }

  /// Returns the next bytes of a file: from memory, or newly read.
  private static func piece(
    of body: Locked<FileAnswers.Body>, files: FileAnswers, from base: any Fetching,
    standStill: (@escaping @Sendable () async throws -> [UInt8]) throws -> [UInt8]
  ) throws -> Piece {
    var current = body.withLock { $0 }
    var piece = Piece()
    if !current.isAtEnd {
      if let bytes = files.take(&current) {
        piece.bytes = bytes
      } else {
        let request = current.missing
        let bytes = try standStill { try await base.fetch(request).body.collect(upTo: .max) }
        files.keep(bytes, for: request)
        piece.bytes = try current.take(bytes)
      }
    }
    if current.isAtEnd { piece.ending = .success(()) }
    body.withLock { $0 = current }
    return piece
  }

  private func wait(until time: Duration) async throws {
    let rest = time - clock.now
    if rest > .zero { try await clock.sleep(for: rest) }
  }

  /// Frees or closes the connection of a request that has ended.
  private func end(_ departure: LinkModel.Departure, keeps: Bool) {
    scheduler.withModel { model in
      if keeps { model.free(departure.connection, at: clock.now) } else { model.close(departure.connection) }
    }
  }

  /// Returns a departure whose connection is open; closes the connection if the task is cancelled before.
  private func settled(_ departure: LinkModel.Departure) async throws -> LinkModel.Departure {
    // Another connection may be opened besides this one.
    scheduler.advance()
    do { return try await scheduler.settled(departure) } catch {
      end(departure, keeps: false)
      throw error
    }
  }

  /// Follows a redirect: the second request leaves when the answer to the first has arrived.
  private func follow(
    _ departure: LinkModel.Departure, from host: LinkHost, to other: LinkHost
  ) async throws -> LinkModel.Departure {
    let time = departure.time + departure.roundTrip
    guard other != host else { return scheduler.withModel { $0.again(departure, at: time) } }
    let next = scheduler.withModel { model in
      model.free(departure.connection, at: time)
      return model.depart(to: other, at: time)
    }
    return link.features.contains(.tls) ? try await settled(next) : next
  }

  /// Puts the bytes of the real body on the link.
  private func supply(
    _ transfer: LinkedTransfer, with body: FetchBody, file: FileAnswers.Body?, of url: URL
  ) {
    if let simulation {
      let file = file.map { Locked($0) }
      transfer.begin { [limit, overdue, files, base] transfer in
        let piece: Piece
        do {
          if let file, let files {
            piece = try Self.piece(of: file, files: files, from: base) { read in
              try Self.standStill(simulation, for: url, within: limit, overdue, read)
            }
          } else {
            piece = try Self.standStill(simulation, for: url, within: limit, overdue) {
              await Self.piece(of: body)
            }
          }
        } catch {
          piece = Piece(ending: .failure(error))
        }
        if !piece.bytes.isEmpty { transfer.put(piece.bytes) }
        switch piece.ending {
        case .success: transfer.finish(nil)
        case .failure(let error): transfer.finish(error)
        case nil: break
        }
      }
    } else {
      transfer.begin(onNeed: nil)
      let task = Task {
        do {
          for try await chunk in body {
            transfer.put(chunk)
            try await transfer.waitForNeed()
          }
          transfer.finish(nil)
        } catch {
          transfer.finish(error)
        }
      }
      transfer.setSupplier(task)
    }
  }
}

/// What servers do besides sending bytes, in a simulation.
package struct LinkServers: Sendable {
  /// The behaviour of a server for one answer.
  package struct Behaviour: Sendable, Hashable {
    /// The time from the arrival of the request to the first byte of the answer.
    package var wait = Duration.zero
    /// The URLs of redirects, in order; the last one is that of the answer.
    package var hops: [URL] = []
    /// True if the server closes the connection after the answer.
    package var closesConnection = false

    package init() {}
  }

  package var behaviour: @Sendable (FetchRequest, FetchResponse) -> Behaviour
  /// Called with the time at which a request leaves, its connection being open.
  package var onDeparture: @Sendable (FetchRequest, Duration) -> Void

  package init(
    behaviour: @escaping @Sendable (FetchRequest, FetchResponse) -> Behaviour,
    onDeparture: @escaping @Sendable (FetchRequest, Duration) -> Void
  ) {
    self.behaviour = behaviour
    self.onDeparture = onDeparture
  }
}

/// The origin that a connection leads to.
struct LinkHost: Sendable, Hashable {
  let name: String
  /// The number of round trips before the first request can leave.
  let handshakes: Int
  let isRemote: Bool
  /// The host name to look up; nil for an address.
  let lookup: String?

  /// Nil for a URL that the link does not apply to.
  init?(_ url: URL) {
    switch url.scheme?.lowercased() {
    case "http":
      self.init(
        name: "http://\(url.host() ?? ""):\(url.port ?? 80)", handshakes: 1, isRemote: true, host: url.host())
    case "https":
      self.init(
        name: "https://\(url.host() ?? ""):\(url.port ?? 443)", handshakes: 2, isRemote: true,
        host: url.host())
    case "file":
      self.init(name: "file:", handshakes: 1, isRemote: false, host: "")
    default:
      return nil
    }
  }

  private init(name: String, handshakes: Int, isRemote: Bool, host: String?) {
    self.name = name
    self.handshakes = handshakes
    self.isRemote = isRemote
    lookup = host.flatMap { Self.isAddress($0) ? nil : $0.lowercased() }
  }

  /// Returns true for an IPv4 or IPv6 address.
  private static func isAddress(_ host: String) -> Bool {
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return host.contains(":") || parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
  }
}

extension FetchRequest {
  /// In a simulation, real bytes arrive and attempts fail in no simulated time, so their events are withheld.
  fileprivate mutating func withholdRealEvents() {
    recordHeld = nil
    recordFailedAttempt = nil
  }
}

extension LinkModel {
  mutating func depart(to host: LinkHost, at now: Duration) -> Departure {
    depart(to: host.name, handshakes: host.handshakes, name: host.lookup, at: now)
  }

  mutating func openAhead(to host: LinkHost, at now: Duration) {
    openAhead(to: host.name, handshakes: host.handshakes, name: host.lookup, at: now)
  }
}
