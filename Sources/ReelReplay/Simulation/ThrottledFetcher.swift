public import Foundation
public import ReelCore
internal import ReelPlayback

/// Gets bytes by way of another fetcher, but not sooner than a modelled link would bring them: see `LinkModel`.
///
/// What crosses the link: http, https, and local files, as if a server near by had them; data: URLs do not. A redirect
/// costs another round trip. As the real transport does, it opens a connection ahead beside the first request of a
/// source and those for manifests.
///
/// On a clock that goes by itself, the real answers are awaited beside the modelled ones: what comes later than it
/// would over the link comes when it comes. In a simulation the real bytes are fetched, piece by piece, while the
/// simulation stands still, and nothing is seen of how they came; a request that fails for real has failed one round trip
/// after it left, whatever the real fetcher has tried before. What a real server does not bring within a limit, an answer or
/// the next 64 KiB, has failed; and so have, so long after they left, all later requests for the same.
///
/// How many bytes came before a server closed a connection is the same each time (ConnectionMonitor); before a reset it
/// is not.
public final class ThrottledFetcher: Fetching, ConnectionOpening {
  /// What crosses the link.
  public let link: LinkSpec

  private let base: any Fetching
  private let clock: any MonotonicClock
  /// Nil on a clock that goes by itself.
  private let simulation: SimulatedRuntime?
  private let scheduler: LinkScheduler
  private let limit: Duration?
  /// What has not come within the limit.
  private let overdue = Locked<[URL: ReelError]>([:])

  /// A link in real time, or by another clock that goes by itself.
  public convenience init(
    _ base: any Fetching, link: LinkSpec, clock: any MonotonicClock = SystemMonotonicClock()
  ) {
    self.init(base, link: link, clock: clock, simulation: nil)
  }

  /// A link in a simulation.
  ///
  /// - Parameter limit: How long the simulation stands still for an answer, or for the next bytes of a body, at most.
  public convenience init(
    _ base: any Fetching, link: LinkSpec, in simulation: SimulatedRuntime, limit: Duration? = nil
  ) {
    self.init(base, link: link, clock: simulation, simulation: simulation, limit: limit)
  }

  private init(
    _ base: any Fetching, link: LinkSpec, clock: any MonotonicClock, simulation: SimulatedRuntime?,
    limit: Duration? = nil
  ) {
    self.base = base
    self.limit = limit
    self.link = link
    self.clock = clock
    self.simulation = simulation
    scheduler = LinkScheduler(LinkModel(link), clock: clock, tick: simulation == nil ? Self.tick : .zero)
  }

  /// Opens a connection to where `url` is, unless one is free or being opened.
  public func openConnection(to url: URL) {
    guard let host = LinkHost(url) else { return }
    scheduler.withModel { $0.openAhead(to: host.name, handshakes: host.handshakes, at: clock.now) }
  }

  /// Transfers that are under way.
  public var transferCount: Int { scheduler.transferCount }

  public func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    guard let host = LinkHost(request.url) else { return try await fetchBeside(request) }
    try Task.checkCancellation()
    let began = clock.now
    var departure = scheduler.withModel { model in
      let departure = model.depart(to: host.name, handshakes: host.handshakes, at: began)
      // Beside it: the request itself has taken a connection.
      if request.purpose == .source || request.purpose == .manifest {
        model.openAhead(to: host.name, handshakes: host.handshakes, at: began)
      }
      return departure
    }
    var metrics = RequestMetrics(
      url: request.url, purpose: request.purpose, status: nil, timeToFirstByte: nil, transferTime: .zero,
      byteCount: 0, reusedConnection: departure.isReused, redirectCount: 0, requestCount: 1)
    var real = request
    // The real one's account is of no interest, and comes at times that are not the simulation's.
    real.report = nil
    if simulation != nil { real.noteHeld = nil }
    let answer: FetchResponse
    do {
      answer = try await fetchForReal(real)
    } catch {
      let failure = error as? ReelError
      metrics.status = failure?.status
      let keeps = failure?.kind == .server
      let patience = failure?.kind == .timedOut && simulation != nil ? limit : nil
      do { try await wait(until: departure.time + (patience ?? link.roundTripTime)) } catch {
        end(departure, keeps: false)
        request.report?(metrics)
        throw error
      }
      end(departure, keeps: keeps)
      request.report?(metrics)
      throw error
    }
    metrics.requestCount = answer.requestCount
    if answer.url != request.url, let other = LinkHost(answer.url) {
      departure = follow(departure, from: host, to: other)
      metrics.redirectCount = 1
      metrics.requestCount = max(2, answer.requestCount)
      metrics.reusedConnection = departure.isReused && metrics.reusedConnection ?? true
    }
    if host.isRemote {
      let isPart = answer.bodyByteCount != nil && answer.bodyByteCount != answer.resourceByteCount
      metrics.status = request.range != nil && (isPart || answer.bodyOffset > 0) ? 206 : 200
    }
    let readyAt = departure.time + link.roundTripTime
    let transfer = LinkedTransfer(
      scheduler, departure: departure, readyAt: readyAt, began: began, metrics: metrics,
      report: request.report)
    if request.method == .head {
      transfer.finish(nil)
    } else {
      supply(transfer, with: answer.body, of: request.url)
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

  /// In real time, parcels that come within so long are handed out together.
  private static let tick = Duration.microseconds(500)
  /// What is had of the real body at a time, in a simulation.
  private static let pieceByteCount = 64 << 10

  private func fetchForReal(_ request: FetchRequest) async throws -> FetchResponse {
    guard let simulation else { return try await base.fetch(request) }
    if let error = overdue.withLock({ $0[request.url] }) { throw error }
    return try Self.standStill(simulation, for: request.url, within: limit, overdue) { [base] in
      try await base.fetch(request)
    }
  }

  /// What does not cross the link.
  private func fetchBeside(_ request: FetchRequest) async throws -> FetchResponse {
    guard let simulation else { return try await base.fetch(request) }
    var real = request
    real.noteHeld = nil
    let (url, limit, overdue) = (request.url, limit, overdue)
    return try await fetchForReal(real).wrappingBody { body in
      try Self.standStill(simulation, for: url, within: limit, overdue) { try await body.next() }
    }
  }

  /// Blocks: the simulation stands still. Static, as a transfer that calls it must not hold the fetcher, whose scheduler holds it.
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

  /// Some of a real body, and how it goes on.
  private struct Piece: Sendable {
    var bytes: [UInt8] = []
    /// Nil where there is more.
    var ending: Result<Void, any Error>?
  }

  /// The next bytes of a real body, as many as are worth the way.
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

  private func wait(until time: Duration) async throws {
    let rest = time - clock.now
    if rest > .zero { try await clock.sleep(for: rest) }
  }

  /// Nothing is on the way any more.
  private func end(_ departure: LinkModel.Departure, keeps: Bool) {
    scheduler.withModel { model in
      if keeps { model.free(departure.connection, at: clock.now) } else { model.close(departure.connection) }
    }
  }

  /// The answer to the first request has led elsewhere: a second one leaves when it has come.
  private func follow(
    _ departure: LinkModel.Departure, from host: LinkHost, to other: LinkHost
  ) -> LinkModel.Departure {
    let time = departure.time + link.roundTripTime
    guard other != host else {
      return LinkModel.Departure(connection: departure.connection, time: time, isReused: departure.isReused)
    }
    return scheduler.withModel { model in
      model.free(departure.connection, at: time)
      return model.depart(to: other.name, handshakes: other.handshakes, at: time)
    }
  }

  /// Has the bytes of the real body put on the link.
  private func supply(_ transfer: LinkedTransfer, with body: FetchBody, of url: URL) {
    if let simulation {
      transfer.begin { [limit, overdue] transfer in
        let piece: Piece
        do {
          piece = try Self.standStill(simulation, for: url, within: limit, overdue) {
            await Self.piece(of: body)
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

/// What connections are kept by.
private struct LinkHost: Equatable {
  let name: String
  /// Round trips before the first request can leave.
  let handshakes: Int
  let isRemote: Bool

  /// Nil for what does not cross the link.
  init?(_ url: URL) {
    switch url.scheme?.lowercased() {
    case "http":
      self.init(name: "http://\(url.host() ?? ""):\(url.port ?? 80)", handshakes: 1, isRemote: true)
    case "https":
      self.init(name: "https://\(url.host() ?? ""):\(url.port ?? 443)", handshakes: 2, isRemote: true)
    case "file":
      self.init(name: "file:", handshakes: 1, isRemote: false)
    default:
      return nil
    }
  }

  private init(name: String, handshakes: Int, isRemote: Bool) {
    self.name = name
    self.handshakes = handshakes
    self.isRemote = isRemote
  }
}
