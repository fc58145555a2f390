internal import Foundation
package import ReelCore
package import ReelPlayback
package import ReelPool

/// The stream of all events of a walk.
///
/// ``lines(_:)`` makes a consumer that writes them as JSON Lines. Each line has `event` and `time_ms` (since the walk
/// began). Depending on the event, it also has `item` (the identity), `slot`, `detail`, `count`, `seconds` (the frame's
/// time on the item's timeline), `request` (its number, from 1), `url`, `purpose` and `bytes`.
package final class WalkTrace: Sendable {
  /// Receives each event, on any thread; must not block.
  package typealias Consumer = @Sendable (WalkEvent) -> Void

  private let began = Locked(Duration.zero)
  private let requestCount = Locked(0)
  private let consumers: [Consumer]

  /// A trace that passes each event to all consumers, in their order.
  package init(consumers: [Consumer]) { self.consumers = consumers }

  /// Returns a consumer that writes JSON Lines.
  package static func lines(_ write: @escaping @Sendable (String) -> Void) -> Consumer {
    { event in
      guard ![.chunk, .memory, .check].contains(event.kind) else { return }
      let line: JSONFields = [
        "event": event.kind.rawValue, "time_ms": event.time, "item": event.item?.description,
        "slot": event.slot, "detail": event.detail, "count": event.count, "seconds": event.seconds,
        "request": event.request, "url": event.url, "purpose": event.purpose?.rawValue,
        "bytes": event.byteCount,
      ]
      if let text = try? JSONLine.string(line, of: "event") { write(text) }
    }
  }

  func appending(_ consumer: @escaping Consumer) -> WalkTrace { WalkTrace(consumers: consumers + [consumer]) }

  func begin(at now: Duration) { began.withLock { $0 = now } }

  /// Returns the time since the walk began.
  func time(of now: Duration) -> Duration { now - began.withLock { $0 } }

  func record(
    _ kind: WalkEvent.Kind, _ id: FeedItem.ID, at now: Duration?, slot: Int? = nil,
    stage: PreloadStage? = nil, detail: String? = nil, count: Int? = nil, seconds: Double? = nil
  ) {
    guard let now else { return }
    record(kind, at: now) { event in
      event.item = id
      event.slot = slot
      event.stage = stage
      event.detail = detail ?? stage?.reportName
      event.count = count
      event.seconds = seconds
    }
  }

  /// Records an event that `fill` describes.
  func record(_ kind: WalkEvent.Kind, at now: Duration, _ fill: (inout WalkEvent) -> Void) {
    var event = WalkEvent(kind, at: time(of: now))
    fill(&event)
    for consumer in consumers { consumer(event) }
  }

  /// Returns a number that distinguishes the events of a request from those of others to the same URL.
  func makeRequestNumber() -> Int {
    requestCount.withLock { count in
      count += 1
      return count
    }
  }

  func record(
    _ kind: WalkEvent.Kind, _ request: FetchRequest, number: Int, of item: FeedItem.ID?, at now: Duration,
    bytes: Int64?, detail: String?, isStored: Bool = false
  ) {
    record(kind, at: now) { event in
      event.item = item
      event.isStored = isStored
      event.request = number
      // The contents of a data: URL may be a key.
      event.url = request.url.scheme?.lowercased() == "data" ? "data:" : request.url.absoluteString
      event.purpose = request.purpose
      event.byteCount = bytes
      event.detail = detail
    }
  }
}

/// One event of a walk, as ``WalkTrace`` passes it to each of its consumers.
package struct WalkEvent: Sendable {
  package enum Kind: String, Sendable {
    case swipe, settled, assigned, reached, evicted, departed, attached, detached, poster, shown, decoded,
      stalled
    case resumed, ended, rewound, failed, request, response, received
    /// Bytes of a body that were read just now. Not part of the JSON Lines.
    case chunk
    /// The memory of each slot. Not part of the JSON Lines.
    case memory
    /// The walk has ended, and `count` items are opened again to determine whether they failed. Not part of
    /// the JSON Lines.
    case check
  }

  package let kind: Kind
  /// The time since the walk began.
  package let time: Duration
  package var item: FeedItem.ID?
  package var slot: Int?
  package var stage: PreloadStage?
  package var detail: String?
  package var count: Int?
  /// The frame's time on the item's timeline.
  package var seconds: Double?
  /// The request's number, from 1.
  package var request: Int?
  package var url: String?
  package var purpose: FetchPurpose?
  package var byteCount: Int64?
  /// True for bytes that came from a store.
  package var isStored = false
  /// For a `memory` event: the bytes that each slot holds.
  package var slotByteCounts: [Int] = []

  package init(_ kind: Kind, at time: Duration) {
    self.kind = kind
    self.time = time
  }
}

/// Records each request, its answer, and the result of its body.
struct TracedFetcher: Fetching, ConnectionOpening {
  let base: any Fetching
  let trace: WalkTrace
  let clock: any MonotonicClock

  func openConnection(to url: URL) { (base as? any ConnectionOpening)?.openConnection(to: url) }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    try await record(request) { try await base.fetch(request) }
  }

  func record(
    _ request: FetchRequest, _ fetch: () async throws -> FetchResponse
  ) async throws -> FetchResponse {
    let (trace, clock, item) = (trace, clock, RequestOwner.item)
    let number = trace.makeRequestNumber()
    let record = { @Sendable (event: WalkEvent.Kind, bytes: Int64?, detail: String?) in
      trace.record(event, request, number: number, of: item, at: clock.now, bytes: bytes, detail: detail)
    }
    record(.request, nil, request.range?.httpText)
    let response: FetchResponse
    do {
      response = try await fetch()
    } catch {
      record(.response, nil, Self.reason(of: error))
      throw error
    }
    record(.response, nil, nil)
    let isStored = response.pieceOrigin()
    // The number of received bytes is reported once: at the end of the body, or when it is released.
    let byteCount = Locked<Int64>(0)
    let onEnd = { @Sendable (result: Result<Void, any Error>) in
      var detail: String?
      if case .failure(let error) = result { detail = Self.reason(of: error) }
      record(.received, byteCount.withLock { $0 }, detail)
    }
    return response.wrappingBody(onEnd: onEnd) { body in
      let chunk = try await body.next()
      if let chunk {
        byteCount.withLock { $0 += Int64(chunk.count) }
        trace.record(
          .chunk, request, number: number, of: item, at: clock.now, bytes: Int64(chunk.count), detail: nil,
          isStored: isStored())
      }
      return chunk
    }
  }

  private static func reason(of error: any Error) -> String {
    (error as? ReelError)?.reason ?? "cancelled"
  }
}

/// A traced fetcher in front of a store, which the pool uses as a store too.
struct TracedStore: MediaStoring, ConnectionOpening {
  let traced: TracedFetcher
  let store: any MediaStoring

  var storedByteCount: Int64 { store.storedByteCount }

  func stores(_ request: FetchRequest) -> Bool { store.stores(request) }

  func storedFetch(of request: FetchRequest) -> (@Sendable () async throws -> FetchResponse)? {
    guard let fetch = store.storedFetch(of: request) else { return nil }
    return { try await traced.record(request, fetch) }
  }

  func trim(toByteCount byteCount: Int64) async { await store.trim(toByteCount: byteCount) }

  func openConnection(to url: URL) { traced.openConnection(to: url) }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse { try await traced.fetch(request) }
}

extension ByteRange {
  fileprivate var httpText: String { length.map { "\(offset)+\($0)" } ?? "\(offset)+" }
}
