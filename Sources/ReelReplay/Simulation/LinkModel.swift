package import ReelCore

/// The arithmetic of a modelled link: when connections stand, and when bytes are across. A pure value: it knows no
/// clock, and moves no bytes.
///
/// - A new connection costs one round trip before the first request on it can leave, `https` two (TCP, and TLS 1.3). An
///   answer's first byte can come one round trip after its request.
/// - Connections carry one request at a time (HTTP/1.1) and are kept for `idleLimit`.
/// - The bytes of all transfers cross one bottleneck, parcel by parcel, by turns between the transfers that have any and
///   whose reader has room for more. There is no slow start, and nothing is lost.
///
/// All times are computed from the times before them: being called late moves nothing.
package struct LinkModel: Sendable {
  /// One parcel that has come across.
  package struct Delivery: Sendable, Hashable {
    package let transfer: Int
    package let byteCount: Int
    package let time: Duration
    /// All bytes of the transfer are across.
    package let isLast: Bool
  }

  /// How a request gets its connection.
  package struct Departure: Sendable, Hashable {
    package let connection: Int
    /// When the request leaves.
    package let time: Duration
    /// True where the connection stood already.
    package let isReused: Bool
  }

  private struct Connection {
    let number: Int
    let host: String
    /// When it stands.
    let readyAt: Duration
    /// When it was free last; nil while it is used.
    var freeSince: Duration?
  }

  private struct Transfer {
    let number: Int
    /// When its first byte can be put on the link.
    let readyAt: Duration
    /// Bytes that wait to be put on the link.
    var waitingCount = 0
    /// Bytes that are across and have not been read.
    var unreadCount = 0
    /// Since when the two let it send.
    var sendableSince: Duration
    /// No more bytes will wait.
    var isComplete = false
  }

  private struct Crossing {
    let transfer: Int
    let byteCount: Int
    let arrival: Duration
  }

  package let link: LinkSpec
  /// A free connection is closed after so long. 60 s.
  package static let idleLimit = Duration.seconds(60)
  /// What a receiver takes in that nobody reads.
  package let windowByteCount: Int

  private var connections: [Connection] = []
  private var transfers: [Transfer] = []
  private var nextNumber = 0
  private var bottleneck: LinkBottleneck
  private var crossing: Crossing?

  package init(_ link: LinkSpec, windowByteCount: Int = 256 << 10) {
    self.link = link
    bottleneck = LinkBottleneck(bitsPerSecond: link.bitsPerSecond)
    self.windowByteCount = max(windowByteCount, 1)
  }

  /// How long so many bytes take on the link alone.
  package func duration(ofByteCount count: Int) -> Duration {
    bottleneck.duration(ofByteCount: count)
  }

  // MARK: Connections

  /// Connections that stand, or are being opened.
  package var connectionCount: Int { connections.count }

  /// Takes a connection for a request: the free one that was used last, else one that is being opened, else a new one.
  ///
  /// - Parameters:
  ///   - host: what connections are kept by.
  ///   - handshakes: round trips that a new one costs.
  package mutating func depart(to host: String, handshakes: Int, at now: Duration) -> Departure {
    dropIdle(at: now)
    if let index = bestFree(to: host, at: now) {
      connections[index].freeSince = nil
      let connection = connections[index]
      return Departure(
        connection: connection.number, time: max(now, connection.readyAt), isReused: connection.readyAt <= now
      )
    }
    let connection = open(to: host, handshakes: handshakes, at: now, isFree: false)
    return Departure(connection: connection.number, time: connection.readyAt, isReused: false)
  }

  /// Opens a connection, unless one is free or being opened.
  package mutating func openAhead(to host: String, handshakes: Int, at now: Duration) {
    dropIdle(at: now)
    guard bestFree(to: host, at: now) == nil else { return }
    open(to: host, handshakes: handshakes, at: now, isFree: true)
  }

  /// The answer has come: the connection can be used again.
  package mutating func free(_ connection: Int, at now: Duration) {
    guard let index = connections.firstIndex(where: { $0.number == connection }) else { return }
    connections[index].freeSince = now
  }

  package mutating func close(_ connection: Int) { connections.removeAll { $0.number == connection } }

  // MARK: Transfers

  /// Begins a transfer, none of whose bytes are there yet.
  ///
  /// - Parameter readyAt: when its first byte can be put on the link.
  package mutating func begin(readyAt: Duration) -> Int {
    nextNumber += 1
    transfers.append(Transfer(number: nextNumber, readyAt: readyAt, sendableSince: readyAt))
    return nextNumber
  }

  /// So many more bytes of a transfer wait to be sent.
  package mutating func put(_ count: Int, of transfer: Int, at now: Duration) {
    change(transfer, at: now) { $0.waitingCount += count }
  }

  /// No more bytes of a transfer will wait. True where all are across.
  package mutating func complete(_ transfer: Int) -> Bool {
    guard let index = transfers.firstIndex(where: { $0.number == transfer }) else { return true }
    transfers[index].isComplete = true
    return transfers[index].waitingCount == 0 && crossing?.transfer != transfer
  }

  /// So many bytes of a transfer have been read.
  package mutating func read(_ count: Int, of transfer: Int, at now: Duration) {
    change(transfer, at: now) { $0.unreadCount -= count }
  }

  /// Takes a transfer off the link, with all that it still had to send.
  package mutating func remove(_ transfer: Int) {
    guard let index = transfers.firstIndex(where: { $0.number == transfer }) else { return }
    transfers.remove(at: index)
    bottleneck.remove(at: index)
    if crossing?.transfer == transfer { crossing = nil }
  }

  /// Bytes of a transfer that wait to be sent.
  package func waitingCount(of transfer: Int) -> Int {
    transfers.first { $0.number == transfer }?.waitingCount ?? 0
  }

  /// The next parcel that is across by `now`; nil for none. To be called until there is none.
  package mutating func nextDelivery(by now: Duration) -> Delivery? {
    putOnLink(by: now)
    guard let parcel = crossing, parcel.arrival <= now else { return nil }
    crossing = nil
    guard let index = transfers.firstIndex(where: { $0.number == parcel.transfer }) else { return nil }
    transfers[index].unreadCount += parcel.byteCount
    let isLast = transfers[index].isComplete && transfers[index].waitingCount == 0
    return Delivery(
      transfer: parcel.transfer, byteCount: parcel.byteCount, time: parcel.arrival, isLast: isLast)
  }

  /// When there may be a delivery, as things stand; nil where none is to come. After `nextDelivery` has given none.
  package var nextTime: Duration? { crossing?.arrival ?? nextStart }

  // MARK: - Private

  private mutating func change(
    _ transfer: Int, at now: Duration, _ body: (inout Transfer) -> Void
  ) {
    guard let index = transfers.firstIndex(where: { $0.number == transfer }) else { return }
    let couldSend = canSend(transfers[index])
    body(&transfers[index])
    if !couldSend, canSend(transfers[index]) { transfers[index].sendableSince = now }
  }

  private func canSend(_ transfer: Transfer) -> Bool {
    transfer.waitingCount > 0 && transfer.unreadCount < windowByteCount
  }

  private func start(of transfer: Transfer) -> Duration {
    max(bottleneck.freeAt, max(transfer.readyAt, transfer.sendableSince))
  }

  /// When the next parcel can be put on the link.
  private var nextStart: Duration? {
    transfers.lazy.filter { canSend($0) }.map { start(of: $0) }.min()
  }

  private mutating func putOnLink(by now: Duration) {
    guard crossing == nil, let start = nextStart, start <= now else { return }
    let ready = transfers.map { canSend($0) && self.start(of: $0) <= start }
    guard let index = bottleneck.takeTurn(among: ready.count, where: { ready[$0] }) else { return }
    let count = min(transfers[index].waitingCount, LinkBottleneck.parcelByteCount)
    transfers[index].waitingCount -= count
    let arrival = bottleneck.put(count, at: start)
    crossing = Crossing(transfer: transfers[index].number, byteCount: count, arrival: arrival)
  }

  /// A connection that nobody uses: one that stands goes before one that is being opened, the one used last first.
  private func bestFree(to host: String, at now: Duration) -> Int? {
    var best: Int?
    for (index, connection) in connections.enumerated() {
      guard connection.host == host, let since = connection.freeSince else { continue }
      guard let known = best, let knownSince = connections[known].freeSince else {
        best = index
        continue
      }
      let (stands, knownStands) = (connection.readyAt <= now, connections[known].readyAt <= now)
      let isBetter =
        stands != knownStands
        ? stands : stands ? since > knownSince : connection.readyAt < connections[known].readyAt
      if isBetter { best = index }
    }
    return best
  }

  @discardableResult
  private mutating func open(
    to host: String, handshakes: Int, at now: Duration, isFree: Bool
  ) -> Connection {
    nextNumber += 1
    let readyAt = now + link.roundTripTime * handshakes
    let connection = Connection(
      number: nextNumber, host: host, readyAt: readyAt, freeSince: isFree ? readyAt : nil)
    connections.append(connection)
    return connection
  }

  private mutating func dropIdle(at now: Duration) {
    connections.removeAll { connection in connection.freeSince.map { now - $0 > Self.idleLimit } ?? false }
  }
}
