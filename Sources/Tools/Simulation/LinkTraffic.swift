internal import ReelCore

/// The requests of players over a modelled link, by arithmetic: the connections that their client opens, and the bytes that
/// have arrived.
///
/// A pure value. A request is known by the number that `send` returns.
package struct LinkTraffic: Sendable {
  /// How a client uses connections.
  package struct Client: Sendable, Hashable {
    /// The most connections to a host; a request beyond them waits for one.
    package var connectionLimit = Int.max
    /// True if a connection carries several requests at once (HTTP/2).
    package var multiplexes = false
    /// True if a connection is kept for the next request.
    package var keepsConnections = true

    package init() {}
  }

  /// A request and what has arrived of its answer.
  package struct Exchange: Sendable {
    package let request: LinkPlayback.Request
    package let byteCount: Int
    package let sentAt: Duration
    /// The bytes that do not cross the link, from the first one on: those of an answer in a cache.
    package let localByteCount: Int
    /// The time at which the first byte arrived.
    package fileprivate(set) var answeredAt: Duration?
    /// The time at which the last byte arrived, or at which the request was cancelled.
    package fileprivate(set) var endedAt: Duration?
    package fileprivate(set) var arrivedCount = 0
    fileprivate var readCount = 0
    /// True if its bytes leave the link as they arrive; false if they wait until they are read.
    fileprivate let isTakenAtOnce: Bool
    /// The connection; its time is final once it is open. Nil while the request waits for one.
    fileprivate var departure: LinkModel.Departure?
    /// The number of the transfer; nil before it begins, and once it has ended.
    fileprivate var transfer: Int?

    package var isComplete: Bool { arrivedCount == byteCount }
    /// The bytes that have crossed the link.
    package var crossedCount: Int { arrivedCount - localByteCount }
    fileprivate var unreadCount: Int { arrivedCount - readCount }
  }

  package private(set) var exchanges: [Exchange] = []
  private var model: LinkModel
  private let client: Client
  /// The numbers of the requests that have a connection, and of those that wait for one.
  private var pending: [Int] = []
  private var waiting: [Int] = []
  /// The number of requests by host that have a connection of their own.
  private var busyCounts: [String: Int] = [:]

  package init(_ model: LinkModel, client: Client = Client()) {
    self.model = model
    self.client = client
  }

  func isComplete(_ number: Int) -> Bool { exchanges[number].isComplete }

  /// The number of bytes that have arrived and have not been read.
  func unreadCount(of number: Int) -> Int { exchanges[number].unreadCount }

  /// The bytes of some requests that have crossed the link.
  package func arrivedCount(of numbers: [Int]) -> Int64 {
    numbers.reduce(0) { $0 + Int64(exchanges[$1].crossedCount) }
  }

  /// Sends a request, and returns its number.
  ///
  /// - Parameters:
  ///   - isTakenAtOnce: False if bytes wait in the connection until they are read, and hold it back.
  ///   - opensAhead: True to open another connection to the host, if none is free.
  ///   - knownByteCount: The bytes that a cache has of the answer, from the first one on. Only the rest crosses the link.
  package mutating func send(
    _ request: LinkPlayback.Request, isTakenAtOnce: Bool = true, opensAhead: Bool = false,
    knownByteCount: Int64 = 0, at now: Duration
  ) -> Int {
    let number = exchanges.count
    let byteCount = Int(clamping: max(request.byteCount, 1))
    let host = knownByteCount >= Int64(byteCount) ? nil : request.host
    var exchange = Exchange(
      request: request, byteCount: byteCount, sentAt: now,
      localByteCount: host == nil ? byteCount : Int(knownByteCount), isTakenAtOnce: isTakenAtOnce)
    exchange.arrivedCount = exchange.localByteCount
    guard let host else {
      exchange.answeredAt = now
      exchange.endedAt = now
      exchanges.append(exchange)
      return number
    }
    exchanges.append(exchange)
    waiting.append(number)
    connect(at: now)
    if opensAhead { model.openAhead(to: host, at: now) }
    beginTransfers(at: now)
    return number
  }

  /// Records that bytes were read, which makes room for more.
  package mutating func read(_ count: Int, of number: Int, at now: Duration) {
    let local = max(0, min(count, exchanges[number].localByteCount - exchanges[number].readCount))
    exchanges[number].readCount += count
    guard !exchanges[number].isTakenAtOnce, let transfer = exchanges[number].transfer else { return }
    model.read(count - local, of: transfer, at: now)
  }

  /// Ends a request whose answer has not arrived. Its connection is closed, unless it carries others.
  package mutating func cancel(_ number: Int, at now: Duration) {
    guard exchanges[number].endedAt == nil else { return }
    exchanges[number].endedAt = now
    waiting.removeAll { $0 == number }
    pending.removeAll { $0 == number }
    if let transfer = exchanges[number].transfer.take() { model.remove(transfer) }
    guard let departure = exchanges[number].departure else { return }
    if !client.multiplexes { model.close(departure.connection) }
    release(number)
    connect(at: now)
    beginTransfers(at: now)
  }

  /// Takes what arrives until a player could do something with it, or until `limit`. Returns the time.
  package mutating func takeNews(by limit: Duration) -> Duration {
    while let next = model.nextTime, next < limit {
      if take(by: next) { return next }
    }
    take(by: limit)
    return limit
  }

  /// Takes what has arrived by `now`. Returns true if an answer is complete, or has bytes that can be read as they come.
  @discardableResult
  package mutating func take(by now: Duration) -> Bool {
    var isNews = false
    while let delivery = model.nextDelivery(by: now) {
      guard let index = pending.firstIndex(where: { exchanges[$0].transfer == delivery.transfer }) else {
        continue
      }
      let number = pending[index]
      if exchanges[number].answeredAt == nil { exchanges[number].answeredAt = delivery.time }
      exchanges[number].arrivedCount += delivery.byteCount
      if exchanges[number].isTakenAtOnce {
        model.read(delivery.byteCount, of: delivery.transfer, at: delivery.time)
      }
      isNews = isNews || delivery.isLast || !exchanges[number].isTakenAtOnce
      guard delivery.isLast else { continue }
      pending.remove(at: index)
      exchanges[number].transfer = nil
      exchanges[number].endedAt = delivery.time
      model.remove(delivery.transfer)
      if let connection = exchanges[number].departure?.connection {
        if client.keepsConnections || client.multiplexes {
          model.free(connection, at: delivery.time)
        } else {
          model.close(connection)
        }
      }
      release(number)
      connect(at: delivery.time)
    }
    beginTransfers(at: now)
    return isNews
  }

  /// The time of the next arrival. Valid after `take(by:)`; nil if nothing is on the way.
  package var nextTime: Duration? { model.nextTime }

  // MARK: - Private

  /// Gives connections to the requests that wait for them.
  private mutating func connect(at now: Duration) {
    guard !waiting.isEmpty else { return }
    var rest: [Int] = []
    for number in waiting {
      guard let host = exchanges[number].request.host else { continue }
      guard client.multiplexes || busyCounts[host.name, default: 0] < client.connectionLimit else {
        rest.append(number)
        continue
      }
      let departure = model.depart(to: host, at: now)
      exchanges[number].departure = departure
      // Others may use it beside this one.
      if client.multiplexes { model.free(departure.connection, at: now) }
      busyCounts[host.name, default: 0] += 1
      pending.append(number)
    }
    waiting = rest
  }

  private mutating func release(_ number: Int) {
    guard let name = exchanges[number].request.host?.name else { return }
    busyCounts[name, default: 1] -= 1
  }

  /// Begins the transfers whose connections are open.
  private mutating func beginTransfers(at now: Duration) {
    for number in pending where exchanges[number].transfer == nil {
      guard let departure = exchanges[number].departure,
        let settled = departure.isPending ? model.settled(departure) : departure
      else { continue }
      let transfer = model.begin(
        readyAt: settled.time + settled.roundTrip + exchanges[number].request.wait, on: settled.connection)
      model.put(exchanges[number].byteCount - exchanges[number].localByteCount, of: transfer, at: now)
      _ = model.complete(transfer)
      exchanges[number].transfer = transfer
    }
  }
}
