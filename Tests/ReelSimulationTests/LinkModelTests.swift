import ReelCore
import ReelPool
import ReelSimulation
import ReelTestSupport
import Testing

@Suite("The arithmetic of a modelled link")
struct LinkModelTests {
  /// A parcel takes 1448 µs: a byte each microsecond.
  private static let parcel = Duration.microseconds(1448)
  private var model = LinkModel(.tenth, windowByteCount: 10_000)

  private mutating func deliveries(by time: Duration) -> [LinkModel.Delivery] {
    var all: [LinkModel.Delivery] = []
    while let next = model.nextDelivery(by: time) { all.append(next) }
    return all
  }

  // MARK: Connections

  @Test("A new connection costs its round trips, a kept one nothing")
  mutating func connections() {
    let first = model.depart(to: "a", handshakes: 1, at: .seconds(1))
    #expect(first.time == .milliseconds(1100))
    #expect(!first.isReused)
    let second = model.depart(to: "a", handshakes: 2, at: .seconds(1))
    #expect(second.time == .milliseconds(1200))
    model.free(first.connection, at: .seconds(2))
    model.free(second.connection, at: .seconds(3))
    let kept = model.depart(to: "a", handshakes: 1, at: .seconds(4))
    // The one that was used last.
    #expect(kept.connection == second.connection)
    #expect(kept.time == .seconds(4))
    #expect(kept.isReused)
    let other = model.depart(to: "b", handshakes: 1, at: .seconds(4))
    #expect(!other.isReused)
    model.close(kept.connection)
    model.free(kept.connection, at: .seconds(5))
    let last = model.depart(to: "a", handshakes: 1, at: .seconds(5))
    #expect(last.connection == first.connection)
  }

  @Test("A free connection is kept for a minute")
  mutating func idle() {
    let first = model.depart(to: "a", handshakes: 1, at: .zero)
    model.free(first.connection, at: .seconds(1))
    let again = model.depart(to: "a", handshakes: 1, at: .seconds(61))
    #expect(again.isReused)
    model.free(again.connection, at: .seconds(62))
    let late = model.depart(to: "a", handshakes: 1, at: .seconds(123))
    #expect(!late.isReused)
    #expect(model.connectionCount == 1)
  }

  @Test("One that is opened ahead is taken before it stands, and none is opened beside it")
  mutating func openAhead() {
    model.openAhead(to: "a", handshakes: 1, at: .zero)
    model.openAhead(to: "a", handshakes: 1, at: .milliseconds(10))
    #expect(model.connectionCount == 1)
    let early = model.depart(to: "a", handshakes: 1, at: .milliseconds(60))
    #expect(early.time == .milliseconds(100))
    #expect(!early.isReused)
    model.openAhead(to: "a", handshakes: 1, at: .milliseconds(60))
    let late = model.depart(to: "a", handshakes: 1, at: .milliseconds(500))
    #expect(late.time == .milliseconds(500))
    #expect(late.isReused)
  }

  // MARK: Transfers

  @Test("Bytes cross at the rate, from when they are ready on")
  mutating func rate() {
    let transfer = model.begin(readyAt: .seconds(1))
    model.put(3000, of: transfer, at: .zero)
    let result1 = model.complete(transfer)
    #expect(!result1)
    let result2 = deliveries(by: .milliseconds(999))
    #expect(result2.isEmpty)
    #expect(model.nextTime == .seconds(1))
    let all = deliveries(by: .seconds(9))
    #expect(all.map(\.transfer) == [transfer, transfer, transfer])
    #expect(all.map(\.byteCount) == [1448, 1448, 104])
    let start = Duration.seconds(1)
    #expect(all.map(\.time) == [start + Self.parcel, start + Self.parcel * 2, start + .microseconds(3000)])
    #expect(all.map(\.isLast) == [false, false, true])
    #expect(model.nextTime == nil)
  }

  @Test("Transfers take turns")
  mutating func turns() {
    let (a, b) = (model.begin(readyAt: .zero), model.begin(readyAt: .zero))
    model.put(1448 * 3, of: a, at: .zero)
    model.put(1448 * 2, of: b, at: .zero)
    let all = deliveries(by: .seconds(1))
    #expect(all.map(\.transfer) == [a, b, a, b, a])
    #expect(all.map(\.time) == (1...5).map { Self.parcel * $0 })
  }

  @Test("What nobody reads stops at the window, and leaves the link to others")
  mutating func window() {
    let (a, b) = (model.begin(readyAt: .zero), model.begin(readyAt: .zero))
    model.put(100_000, of: a, at: .zero)
    let filled = deliveries(by: .seconds(1))
    #expect(filled.reduce(0) { $0 + $1.byteCount } == 1448 * 7)
    #expect(model.nextTime == nil)
    model.put(1448, of: b, at: .seconds(2))
    let result3 = deliveries(by: .seconds(3))
    #expect(result3.map(\.time) == [.seconds(2) + Self.parcel])
    model.read(1448, of: a, at: .seconds(4))
    // From when there is room on, not from when the link was free.
    let result4 = deliveries(by: .seconds(5))
    #expect(result4.map(\.time) == [.seconds(4) + Self.parcel])
  }

  @Test("A transfer that is given up takes its parcel along, and the link is busy with it all the same")
  mutating func removal() {
    let (a, b) = (model.begin(readyAt: .zero), model.begin(readyAt: .zero))
    model.put(1448, of: a, at: .zero)
    model.put(1448, of: b, at: .zero)
    let result5 = deliveries(by: .microseconds(10))
    #expect(result5 == [])
    model.remove(a)
    let rest = deliveries(by: .seconds(1))
    #expect(rest.map(\.transfer) == [b])
    #expect(rest.map(\.time) == [Self.parcel * 2])
    #expect(model.waitingCount(of: a) == 0)
  }

  @Test("A transfer without bytes is over at once; one whose last parcel crosses is not")
  mutating func completion() {
    let empty = model.begin(readyAt: .zero)
    let result6 = model.complete(empty)
    #expect(result6)
    let short = model.begin(readyAt: .zero)
    model.put(100, of: short, at: .zero)
    let result7 = deliveries(by: .microseconds(10))
    #expect(result7 == [])
    let result8 = model.complete(short)
    #expect(!result8)
    let result9 = deliveries(by: .seconds(1))
    #expect(result9.map(\.isLast) == [true])
    let result10 = model.complete(short)
    #expect(result10)
  }
}

extension LinkModel {
  /// Everything that crosses the link from its next time on.
  mutating func allDeliveries() -> [Delivery] {
    var all: [Delivery] = []
    while let time = nextTime {
      while let delivery = nextDelivery(by: time) { all.append(delivery) }
    }
    return all
  }
}

extension LinkSpec {
  /// A byte each microsecond, 100 ms.
  static let tenth: LinkSpec = {
    guard let link = try? LinkSpec(bitsPerSecond: 8_000_000, roundTripTime: .milliseconds(100)) else {
      preconditionFailure("a valid link")
    }
    return link
  }()
}
