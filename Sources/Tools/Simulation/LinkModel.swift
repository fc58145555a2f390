internal import ReelCore

/// The arithmetic of a modelled link: the times at which connections are open and bytes have crossed it. A
/// pure value: it has no clock, and moves no bytes.
///
/// - A new connection costs one round trip before its first request can leave, `https` two (TCP, and TLS
///   1.3). An answer's first byte can arrive one round trip after its request.
/// - Connections carry one request at a time (HTTP/1.1) and are kept for `idleLimit`.
/// - The bytes of all transfers cross one bottleneck, parcel by parcel, in turns among the transfers that
///   have bytes and whose reader has room for more. Nothing is lost. The rate is constant, or that of a
///   recording.
///
/// Options of the link (`LinkOptions`) add to this:
/// - `jitter`: each round trip is longer by a time between 0 and the jitter, uniformly distributed, and drawn
///   for each connection separately.
/// - `tcp`: each connection has a congestion window (`LinkWindow`), and a parcel has headers of 52 bytes.
/// - `tls`: the second round trip of an `https` connection transfers `certificateByteCount` bytes across the
///   link. Requests leave when all of them have crossed it. Sessions are not resumed.
/// - `dns`: the first connection to a host name begins one round trip later. From then on, the name is known.
///
/// All times are computed from earlier times: a late call changes nothing.
package struct LinkModel: Sendable {
  /// One parcel that has crossed the link.
  package struct Delivery: Sendable, Hashable {
    package let transfer: Int
    package let byteCount: Int
    package let time: Duration
    /// True if all bytes of the transfer have crossed the link.
    package let isLast: Bool
  }

  /// The use of a connection for a request.
  package struct Departure: Sendable, Hashable {
    package let connection: Int
    /// The time at which the request leaves; the earliest possible one if the connection is still being
    /// opened over the link.
    package let time: Duration
    /// True if the connection was already open.
    package let isReused: Bool
    /// The time from the departure of the request to the earliest arrival of the first byte of the answer.
    package let roundTrip: Duration
    /// True if the connection is open only once its certificates have crossed the link: see `settled(_:)`.
    package let isPending: Bool
  }

  private struct Connection {
    let number: Int
    let host: String
    /// The time at which it is open, or could be at the earliest.
    var readyAt: Duration
    /// True if its certificates have not crossed the link yet.
    var isPending: Bool
    /// The time since which it is free; nil while it is used.
    var freeSince: Duration?
    var window = LinkWindow()
    /// The generator of its jitter.
    var random: SplitMix64

    func stands(at time: Duration) -> Bool { !isPending && readyAt <= time }
  }

  private struct Transfer {
    let number: Int
    /// The time at which its first byte can be put on the link.
    let readyAt: Duration
    /// The connection that it uses; nil if that does not matter.
    let connection: Int?
    /// True if it transfers the certificates of its connection.
    let isHandshake: Bool
    /// The number of bytes that wait to be put on the link.
    var waitingCount = 0
    /// The number of bytes that have crossed the link and have not been read.
    var unreadCount = 0
    /// The time since which these two counts allow it to send.
    var sendableSince: Duration
    /// True if no more bytes will wait.
    var isComplete = false

    init(number: Int, readyAt: Duration, connection: Int?, isHandshake: Bool = false) {
      self.number = number
      self.readyAt = readyAt
      self.connection = connection
      self.isHandshake = isHandshake
      sendableSince = readyAt
    }
  }

  private struct Crossing {
    let transfer: Int
    let byteCount: Int
    let arrival: Duration
  }

  package let link: LinkSpec
  /// The time after which a free connection is closed. 60 s.
  package static let idleLimit = Duration.seconds(60)
  /// The bytes that a server sends with `tls` before the first answer: two certificates and the rest of its
  /// flight of TLS 1.3.
  package static let certificateByteCount = 4000
  /// The number of bytes that a receiver buffers without a reader.
  package let windowByteCount: Int
  /// The bytes of a full parcel.
  private let parcelByteCount: Int

  private var connections: [Connection] = []
  private var transfers: [Transfer] = []
  private var nextNumber = 0
  private var bottleneck: LinkBottleneck
  private var crossing: Crossing?
  /// The time at which each looked-up host name is known.
  private var lookups: [String: Duration] = [:]
  /// The connections whose certificates have crossed the link, until they are taken.
  private var opened: [Int] = []

  /// - Parameters:
  ///   - windowByteCount: The number of bytes that a receiver buffers without a reader.
  ///   - parcelByteCount: The bytes of a full parcel: more than a segment of TCP cost less to compute. With `tcp`, a parcel
  ///     has one segment as long as the window has little room.
  ///   - zero: The time at which a recorded link starts.
  package init(
    _ link: LinkSpec, windowByteCount: Int = 256 << 10,
    parcelByteCount: Int = LinkBottleneck.parcelByteCount, zero: Duration = .zero
  ) {
    self.link = link
    self.parcelByteCount = max(parcelByteCount, LinkBottleneck.parcelByteCount)
    bottleneck = LinkBottleneck(link, zero: zero)
    self.windowByteCount = max(windowByteCount, 1)
  }

  /// Returns how long `count` bytes take if nothing else is on the link.
  package func duration(ofByteCount count: Int) -> Duration {
    bottleneck.duration(ofByteCount: count)
  }

  // MARK: Connections

  /// The number of connections that are open or being opened.
  package var connectionCount: Int { connections.count }

  /// Takes a connection for a request: the free one that was used last, or else one that is being opened, or
  /// else a new one.
  ///
  /// - Parameters:
  ///   - host: The key of connections.
  ///   - handshakes: The number of round trips that a new one costs.
  ///   - name: The host name to look up; nil for an address.
  package mutating func depart(
    to host: String, handshakes: Int, name: String? = nil, at now: Duration
  ) -> Departure {
    dropIdle(at: now)
    let known = bestFree(to: host, at: now)
    let isReused = known.map { connections[$0].stands(at: now) } ?? false
    let index = known ?? open(to: host, handshakes: handshakes, name: name, at: now)
    connections[index].freeSince = nil
    return Departure(
      connection: connections[index].number, time: max(now, connections[index].readyAt), isReused: isReused,
      roundTrip: roundTrip(ofConnectionAt: index), isPending: connections[index].isPending)
  }

  /// Returns the departure with its final times, once its connection is open; nil before.
  package func settled(_ departure: Departure) -> Departure? {
    guard let connection = connections.first(where: { $0.number == departure.connection }),
      !connection.isPending
    else { return nil }
    return Departure(
      connection: departure.connection, time: max(departure.time, connection.readyAt), isReused: false,
      roundTrip: departure.roundTrip, isPending: false)
  }

  /// Returns the departure of another request on the connection of an earlier one, at `time`.
  package mutating func again(_ departure: Departure, at time: Duration) -> Departure {
    let index = connections.firstIndex { $0.number == departure.connection }
    return Departure(
      connection: departure.connection, time: time, isReused: departure.isReused,
      roundTrip: index.map { roundTrip(ofConnectionAt: $0) } ?? link.roundTripTime, isPending: false)
  }

  /// Opens a connection, unless one is free or being opened.
  package mutating func openAhead(to host: String, handshakes: Int, name: String? = nil, at now: Duration) {
    dropIdle(at: now)
    guard bestFree(to: host, at: now) == nil else { return }
    let index = open(to: host, handshakes: handshakes, name: name, at: now)
    connections[index].freeSince = connections[index].readyAt
  }

  /// Returns the connections that have opened since the last call because their certificates have crossed the
  /// link.
  package mutating func takeOpened() -> [Int] {
    defer { opened = [] }
    return opened
  }

  /// Frees a connection whose answer has arrived, so that it can be used again.
  package mutating func free(_ connection: Int, at now: Duration) {
    guard let index = connections.firstIndex(where: { $0.number == connection }) else { return }
    connections[index].freeSince = now
  }

  package mutating func close(_ connection: Int) {
    connections.removeAll { $0.number == connection }
    if let handshake = transfers.first(where: { $0.isHandshake && $0.connection == connection }) {
      remove(handshake.number)
    }
  }

  // MARK: Transfers

  /// Begins a transfer without bytes.
  ///
  /// - Parameters:
  ///   - readyAt: The time at which its first byte can be put on the link.
  ///   - connection: The connection that it uses.
  package mutating func begin(readyAt: Duration, on connection: Int? = nil) -> Int {
    nextNumber += 1
    transfers.append(Transfer(number: nextNumber, readyAt: readyAt, connection: connection))
    return nextNumber
  }

  /// Adds bytes of a transfer that wait to be sent.
  package mutating func put(_ count: Int, of transfer: Int, at now: Duration) {
    change(transfer, at: now) { $0.waitingCount += count }
  }

  /// Records that no more bytes of a transfer will wait. True if all have crossed the link.
  package mutating func complete(_ transfer: Int) -> Bool {
    guard let index = transfers.firstIndex(where: { $0.number == transfer }) else { return true }
    transfers[index].isComplete = true
    return transfers[index].waitingCount == 0 && crossing?.transfer != transfer
  }

  /// Records that bytes of a transfer have been read.
  package mutating func read(_ count: Int, of transfer: Int, at now: Duration) {
    change(transfer, at: now) { $0.unreadCount -= count }
  }

  /// Removes a transfer from the link, with all its unsent bytes.
  package mutating func remove(_ transfer: Int) {
    guard let index = transfers.firstIndex(where: { $0.number == transfer }) else { return }
    transfers.remove(at: index)
    bottleneck.remove(at: index)
    if crossing?.transfer == transfer { crossing = nil }
  }

  /// Returns the number of bytes of a transfer that wait to be sent.
  package func waitingCount(of transfer: Int) -> Int {
    transfers.first { $0.number == transfer }?.waitingCount ?? 0
  }

  /// Returns the next parcel that has crossed the link by `now`; nil for none. Call it until there is none.
  package mutating func nextDelivery(by now: Duration) -> Delivery? {
    while true {
      putOnLink(by: now)
      guard let parcel = crossing, parcel.arrival <= now else { return nil }
      crossing = nil
      guard let index = transfers.firstIndex(where: { $0.number == parcel.transfer }) else { return nil }
      let isLast = transfers[index].isComplete && transfers[index].waitingCount == 0
      guard !transfers[index].isHandshake else {
        if isLast { finishHandshake(at: index, time: parcel.arrival) }
        continue
      }
      transfers[index].unreadCount += parcel.byteCount
      return Delivery(
        transfer: parcel.transfer, byteCount: parcel.byteCount, time: parcel.arrival, isLast: isLast)
    }
  }

  /// The time of the next possible delivery in the current state; nil if there is none. Valid after
  /// `nextDelivery` has returned nil.
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
    let start = max(bottleneck.freeAt, max(transfer.readyAt, transfer.sendableSince))
    guard link.features.contains(.tcp), let index = connectionIndex(of: transfer),
      let opensAt = connections[index].window.opensAt
    else { return start }
    return max(start, opensAt)
  }

  private func connectionIndex(of transfer: Transfer) -> Int? {
    transfer.connection.flatMap { number in connections.firstIndex { $0.number == number } }
  }

  /// The time at which the next parcel can be put on the link.
  private var nextStart: Duration? {
    var first: Duration?
    for transfer in transfers where canSend(transfer) {
      let start = start(of: transfer)
      first = min(first ?? start, start)
    }
    return first
  }

  private mutating func putOnLink(by now: Duration) {
    guard crossing == nil, let start = nextStart, start <= now else { return }
    if link.features.contains(.tcp) { acknowledge(by: start) }
    // The one that there is can send.
    var ready: [Bool] = []
    if transfers.count > 1 {
      for transfer in transfers { ready.append(canSend(transfer) && self.start(of: transfer) <= start) }
    }
    let next = bottleneck.takeTurn(among: transfers.count) { ready.isEmpty || ready[$0] }
    guard let index = next else { return }
    var count = min(transfers[index].waitingCount, parcelByteCount)
    let arrival: Duration
    if link.features.contains(.tcp) {
      let place = connectionIndex(of: transfers[index])
      // Transfers have equal turns, also if one of them may send little at a time.
      var segmentCount = Int.max
      for (index, transfer) in transfers.enumerated() where ready.isEmpty || ready[index] {
        segmentCount = min(segmentCount, self.segmentCount(inParcelOf: transfer))
      }
      count = min(count, segmentCount * LinkBottleneck.parcelByteCount)
      arrival = bottleneck.put(count + segmentCount * LinkWindow.headerByteCount, at: start)
      if let place {
        let acknowledged = arrival + roundTrip(ofConnectionAt: place)
        let waitingSince = max(transfers[index].readyAt, transfers[index].sendableSince)
        connections[place].window.send(
          segmentCount, at: start, waitingSince: waitingSince, acknowledgedAt: acknowledged)
      }
    } else {
      arrival = bottleneck.put(count, at: start)
    }
    transfers[index].waitingCount -= count
    crossing = Crossing(transfer: transfers[index].number, byteCount: count, arrival: arrival)
  }

  /// The number of segments that a transfer may put on the link at a time.
  private func segmentCount(inParcelOf transfer: Transfer) -> Int {
    guard parcelByteCount > LinkBottleneck.parcelByteCount, let index = connectionIndex(of: transfer) else {
      return 1
    }
    return connections[index].window.segmentCount(inParcelOf: min(transfer.waitingCount, parcelByteCount))
  }

  private mutating func acknowledge(by time: Duration) {
    for index in connections.indices where connections[index].window.outstandingCount > 0 {
      let number = connections[index].number
      let since = waitingSince(on: number)
      connections[index].window.acknowledge(by: time, waitingSince: since)
    }
  }

  /// Returns since when a transfer of a connection could send if link and window allowed it; nil for none.
  private func waitingSince(on connection: Int) -> Duration? {
    transfers.lazy.filter { $0.connection == connection && canSend($0) }
      .map { max($0.readyAt, $0.sendableSince) }.min()
  }

  /// Returns the round-trip time with its jitter, as drawn for the next round trip of a connection.
  private mutating func roundTrip(ofConnectionAt index: Int) -> Duration {
    guard link.jitter > .zero else { return link.roundTripTime }
    return link.roundTripTime + Self.draw(link.jitter, &connections[index].random)
  }

  private static func draw(_ jitter: Duration, _ random: inout SplitMix64) -> Duration {
    let nanoseconds = UInt64(clamping: jitter.wholeMicroseconds) * 1000
    return .nanoseconds(Int64(random.next().multipliedFullWidth(by: nanoseconds + 1).high))
  }

  /// Records that the certificates of a connection have crossed the link.
  private mutating func finishHandshake(at index: Int, time: Duration) {
    let transfer = transfers[index]
    remove(transfer.number)
    guard let place = connectionIndex(of: transfer) else { return }
    connections[place].readyAt = time
    connections[place].isPending = false
    if connections[place].freeSince != nil { connections[place].freeSince = time }
    opened.append(connections[place].number)
  }

  /// Returns an unused connection: an open one before one that is being opened, the one used last first.
  private func bestFree(to host: String, at now: Duration) -> Int? {
    var best: Int?
    for (index, connection) in connections.enumerated() {
      guard connection.host == host, let since = connection.freeSince else { continue }
      guard let known = best, let knownSince = connections[known].freeSince else {
        best = index
        continue
      }
      let (stands, knownStands) = (connection.stands(at: now), connections[known].stands(at: now))
      let isBetter =
        stands != knownStands
        ? stands : stands ? since > knownSince : connection.readyAt < connections[known].readyAt
      if isBetter { best = index }
    }
    return best
  }

  /// Opens a connection for use; returns its index.
  private mutating func open(to host: String, handshakes: Int, name: String?, at now: Duration) -> Int {
    nextNumber += 1
    let number = nextNumber
    connections.append(
      Connection(
        number: number, host: host, readyAt: now, isPending: link.features.contains(.tls) && handshakes > 1,
        freeSince: nil,
        random: SplitMix64(seed: link.seed ^ UInt64(number) &* 0x9e37_79b9_7f4a_7c15)))
    let index = connections.count - 1
    var begin = now
    if link.features.contains(.dns), let name {
      let known = lookups[name] ?? now + roundTrip(ofConnectionAt: index)
      lookups[name] = known
      begin = max(now, known)
    }
    for _ in 0..<handshakes { begin += roundTrip(ofConnectionAt: index) }
    connections[index].readyAt = begin
    if connections[index].isPending {
      nextNumber += 1
      var transfer = Transfer(number: nextNumber, readyAt: begin, connection: number, isHandshake: true)
      transfer.waitingCount = Self.certificateByteCount
      transfer.isComplete = true
      transfers.append(transfer)
    }
    return index
  }

  private mutating func dropIdle(at now: Duration) {
    connections.removeAll { connection in
      !connection.isPending && (connection.freeSince.map { now - $0 > Self.idleLimit } ?? false)
    }
  }
}
