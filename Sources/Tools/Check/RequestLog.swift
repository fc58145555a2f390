package import Foundation
internal import HTTPTypes
package import ReelCore

/// A fetcher in front of another that records each request and its answer.
///
/// It passes everything on unchanged. All requests of the start are kept, and of the others as many as `limit`, so that
/// a list of 100,000 segments does not fill the memory; of those beyond it, the failed ones are kept, up to the same
/// limit.
package final class RequestLog: Fetching, ConnectionOpening {
  private struct State {
    var requests: [RequestFacts] = []
    var isStart = true
    /// The number of requests that are not of the start.
    var otherCount = 0
    var keptFailureCount = 0
    var sourceBeginning: [UInt8] = []
  }

  /// The most bytes of the source's body that are kept, to say what it is.
  private static let beginningByteCount = 4096

  private let base: any Fetching
  private let clock = SystemMonotonicClock()
  private let limit: Int
  private let began: Duration
  private let state = Locked(State())

  /// The check begins with this call.
  ///
  /// - Parameters:
  ///   - base: Sends the requests.
  ///   - limit: The number of requests after the start that are kept.
  package init(_ base: any Fetching, limit: Int = 4096) {
    self.base = base
    self.limit = limit
    began = clock.now
  }

  /// The requests so far, in the order in which they were sent.
  package var requests: [RequestFacts] { state.withLock { $0.requests } }

  /// The time since the check began.
  var elapsed: Duration { clock.now - began }

  /// The first bytes of the source's body.
  package var sourceBeginning: [UInt8] { state.withLock { $0.sourceBeginning } }

  /// Ends the start: requests from now on do not belong to it.
  package func endStart() { state.withLock { $0.isStart = false } }

  package func openConnection(to url: URL) { (base as? any ConnectionOpening)?.openConnection(to: url) }

  package func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    try await fetch(request, as: request.purpose)
  }

  /// Sends a request, and records it with another purpose.
  func fetch(_ request: FetchRequest, as purpose: FetchPurpose) async throws -> FetchResponse {
    let facts = RequestFacts(
      url: request.url, purpose: purpose, method: request.method, range: request.range,
      began: clock.now - began)
    let index = state.withLock { state -> Int? in
      if !state.isStart {
        state.otherCount += 1
        guard state.otherCount <= limit else { return nil }
      }
      state.requests.append(facts)
      return state.requests.count - 1
    }
    let record = Record(log: self, index: index, facts: facts)
    var request = request
    request.addReport { record.finish($0) }
    request.addFailedAttempt { error, _ in record.fail(error) }
    do {
      let response = try await base.fetch(request)
      record.change { facts in
        facts.answerURL = response.url
        facts.contentType = response.contentType
        facts.statedByteCount = response.bodyByteCount
      }
      let isSource = request.purpose == .source
      return response.wrappingBody { result in
        record.end(result)
      } _: { [self] body in
        let chunk = try await body.next()
        if let chunk { record.receive(chunk.count) }
        if isSource, let chunk { keep(chunk) }
        return chunk
      }
    } catch {
      record.end(.failure(error))
      throw error
    }
  }

  // MARK: - Private

  private func keep(_ chunk: [UInt8]) {
    state.withLock { state in
      let room = Self.beginningByteCount - state.sourceBeginning.count
      if room > 0 { state.sourceBeginning += chunk.prefix(room) }
    }
  }

  /// What becomes known of one request, in whatever order.
  private final class Record: Sendable {
    private let log: RequestLog
    /// The place in the log; nil if it is kept only if it fails.
    private let index: Int?
    private let facts: Locked<RequestFacts>

    init(log: RequestLog, index: Int?, facts: RequestFacts) {
      self.log = log
      self.index = index
      self.facts = Locked(facts)
    }

    func change(_ body: (inout RequestFacts) -> Void) {
      if let index {
        log.state.withLock { body(&$0.requests[index]) }
      } else {
        facts.withLock { body(&$0) }
      }
    }

    func receive(_ count: Int) { change { $0.receivedByteCount += Int64(count) } }

    /// Records an attempt that failed, and is repeated or goes on where it broke off.
    func fail(_ error: ReelError) {
      change { facts in
        facts.failedAttempts.append(error)
        let received = facts.receivedByteCount
        if received > 0, facts.breaks.last != received { facts.breaks.append(received) }
      }
    }

    func finish(_ metrics: RequestMetrics) {
      let ended = log.clock.now - log.began
      change { facts in
        facts.metrics = metrics
        facts.fields = metrics.fields
        facts.ended = ended
      }
    }

    func end(_ result: Result<Void, any Error>) {
      let ended = log.clock.now - log.began
      change { facts in
        if facts.ended == nil { facts.ended = ended }
        switch result {
        case .success: facts.isComplete = true
        case .failure(let error as ReelError): facts.failure = error
        // The reader needed no more.
        case .failure: break
        }
      }
      guard index == nil else { return }
      let facts = facts.withLock { $0 }
      guard facts.failure != nil else { return }
      log.state.withLock { state in
        guard state.keptFailureCount < log.limit else { return }
        state.keptFailureCount += 1
        state.requests.append(facts)
      }
    }
  }
}

/// How long servers took to answer, without the way there and back.
///
/// The round trip of a host is estimated by its fastest connect: TCP takes one round trip, TLS 1.3 another.
package struct ServerWaits: Sendable {
  private var roundTrips: [String: Duration] = [:]

  package init(_ requests: [RequestFacts]) {
    for request in requests {
      guard let host = request.host, let time = request.metrics?.connectTime else { continue }
      let trip = host.hasPrefix("https") ? time / 2 : time
      roundTrips[host] = min(roundTrips[host] ?? trip, trip)
    }
  }

  /// Returns the wait of a request at its server; nil without an answer, or if it was not measured.
  package func wait(of request: RequestFacts) -> Duration? {
    guard let time = request.metrics?.answerTime else { return nil }
    return max(.zero, time - (request.host.flatMap { roundTrips[$0] } ?? .zero))
  }

  /// The estimated round trip to the host of a request; nil if unknown.
  package func roundTrip(of request: RequestFacts) -> Duration? {
    request.host.flatMap { roundTrips[$0] }
  }
}

extension RequestFacts {
  /// The scheme, host and port of the server that answered; nil for files and `data:` URLs.
  package var host: String? {
    ServerAddress(answerURL ?? url)?.description
  }

  /// The value of the first header field with a name, without regard to case; nil without one.
  package func field(_ name: String) -> String? {
    fields.first { $0.name.canonicalName == name.lowercased() }?.value
  }

  /// True if the server delivered what was asked for.
  package var isSuccess: Bool { (200...299).contains(metrics?.status ?? 0) && failure == nil }
}
