import Foundation
import ReelCore
import ReelSimulation
import ReelTestSupport
import Testing

/// The link brings a byte each microsecond, and a round trip takes 100 ms.
@Suite("Options of a modelled link")
struct LinkOptionTests {
  private func model(_ options: String, seed: UInt64 = 1) throws -> LinkModel {
    LinkModel(try LinkSpec(parsing: "8Mbit/100ms" + options).seeded(with: seed), windowByteCount: 1 << 30)
  }

  /// When an answer of `count` bytes is across that can begin at `readyAt`.
  private func end(
    _ model: inout LinkModel, _ departure: LinkModel.Departure, _ count: Int
  ) throws -> Duration {
    let transfer = model.begin(readyAt: departure.time + departure.roundTrip, on: departure.connection)
    model.put(count, of: transfer, at: departure.time)
    _ = model.complete(transfer)
    let delivery = try #require(model.allDeliveries().last)
    #expect(delivery.isLast)
    model.remove(transfer)
    model.free(departure.connection, at: delivery.time)
    return delivery.time
  }

  // MARK: tcp

  @Test("tcp: ten segments, then a round trip; a used connection has its window")
  func window() throws {
    var model = try model(",tcp")
    let first = model.depart(to: "a", handshakes: 1, at: .zero)
    // 1500 µs for a segment with its headers.
    let short = try end(&model, first, 1448 * 10)
    #expect(short == .milliseconds(215))
    var other = try self.model(",tcp")
    let long = try end(&other, other.depart(to: "a", handshakes: 1, at: .zero), 1448 * 11)
    // The acknowledgement of the first one comes 100 ms after it came across.
    #expect(long == .microseconds(201_500 + 100_000 + 1500))
    // 10, 20 and 40 segments in three round trips, then all at once.
    var warm = try self.model(",tcp")
    let filled = try end(&warm, warm.depart(to: "a", handshakes: 1, at: .zero), 1448 * 200)
    let again = warm.depart(to: "a", handshakes: 1, at: filled)
    #expect(again.isReused)
    #expect(try end(&warm, again, 1448 * 40) == filled + .milliseconds(160))
    // After a pause it begins anew.
    let idle = warm.depart(to: "a", handshakes: 1, at: filled + .seconds(30))
    let late = try end(&warm, idle, 1448 * 40)
    #expect(late > filled + .seconds(30) + .milliseconds(300))
    #expect(late < filled + .seconds(30) + .milliseconds(400))
  }

  @Test("tcp: connections have windows of their own, and share the link")
  func sharing() throws {
    var model = try model(",tcp")
    let one = model.depart(to: "a", handshakes: 1, at: .zero)
    let two = model.depart(to: "a", handshakes: 1, at: .zero)
    let transfers = [one, two].map { model.begin(readyAt: .milliseconds(200), on: $0.connection) }
    for transfer in transfers {
      model.put(1448 * 11, of: transfer, at: .zero)
      _ = model.complete(transfer)
    }
    let deliveries = model.allDeliveries()
    #expect(deliveries.count == 22)
    #expect(deliveries[19].time == .milliseconds(230))
    #expect(deliveries[20].time == .microseconds(303_000))
    #expect(deliveries.suffix(2).map(\.transfer) == transfers)
  }

  // MARK: Lateness

  @Test(
    "Being called late moves nothing, no byte is lost, and the rate is kept",
    arguments: ["", ",tcp,jitter=30ms"],
    0..<25)
  func lateness(options: String, seed: Int) throws {
    var random = SplitMix(seed: UInt64(seed))
    var often = try model(options, seed: UInt64(seed))
    var seldom = often
    var counts: [Int: Int] = [:]
    for _ in 0..<random.next(below: 8) + 1 {
      let start = Duration.microseconds(random.next(below: 20_000))
      let departure = often.depart(to: "a", handshakes: 1, at: .zero)
      let same = seldom.depart(to: "a", handshakes: 1, at: .zero)
      #expect(same == departure)
      let count = random.next(below: 100_000) + 1
      let readyAt = departure.time + departure.roundTrip + start
      let transfer = often.begin(readyAt: readyAt, on: departure.connection)
      _ = seldom.begin(readyAt: readyAt, on: departure.connection)
      counts[transfer] = count
      often.put(count, of: transfer, at: .zero)
      seldom.put(count, of: transfer, at: .zero)
      _ = often.complete(transfer)
      _ = seldom.complete(transfer)
    }
    let exact = often.allDeliveries()
    var late: [LinkModel.Delivery] = []
    var time = Duration.zero
    while seldom.nextTime != nil {
      time += .microseconds(random.next(below: 100_000) + 1)
      while let next = seldom.nextDelivery(by: time) { late.append(next) }
    }
    #expect(exact == late)
    #expect(exact.count { $0.isLast } == counts.count)
    for (transfer, count) in counts {
      #expect(exact.filter { $0.transfer == transfer }.reduce(0) { $0 + $1.byteCount } == count)
    }
    for (earlier, later) in zip(exact, exact.dropFirst()) {
      #expect(later.time - earlier.time >= often.duration(ofByteCount: later.byteCount))
    }
  }

  // MARK: tls, dns, jitter

  @Test("tls: certificates cross the link before the first request")
  func certificates() throws {
    var model = try model(",tls")
    let departure = model.depart(to: "a", handshakes: 2, at: .zero)
    #expect(departure.isPending)
    #expect(model.settled(departure) == nil)
    #expect(model.nextTime == .milliseconds(200))
    // Another transfer takes turns with them.
    let transfer = model.begin(readyAt: .milliseconds(200))
    model.put(1448, of: transfer, at: .zero)
    let deliveries = model.allDeliveries()
    #expect(deliveries.map(\.byteCount) == [1448])
    #expect(model.takeOpened() == [departure.connection])
    let opened = model.takeOpened()
    #expect(opened.isEmpty)
    let settled = try #require(model.settled(departure))
    #expect(settled.time == .microseconds(200_000 + 4000 + 1448))
    #expect(!settled.isPending)
    model.free(settled.connection, at: .seconds(1))
    let again = model.depart(to: "a", handshakes: 2, at: .seconds(2))
    #expect(again.isReused && !again.isPending)
    // Plain HTTP has none.
    let plain = model.depart(to: "b", handshakes: 1, at: .seconds(2))
    #expect(!plain.isPending)
  }

  @Test("tls: a connection that is closed meanwhile leaves the link")
  func closedHandshake() throws {
    var model = try model(",tls")
    let departure = model.depart(to: "a", handshakes: 2, at: .zero)
    model.close(departure.connection)
    #expect(model.nextTime == nil)
    #expect(model.connectionCount == 0)
    model.openAhead(to: "a", handshakes: 2, at: .zero)
    let early = model.depart(to: "a", handshakes: 2, at: .milliseconds(1))
    #expect(early.isPending && !early.isReused)
    #expect(model.connectionCount == 1)
  }

  @Test("dns: one look-up for each name")
  func lookups() throws {
    var model = try model(",dns")
    let first = model.depart(to: "a:80", handshakes: 1, name: "a", at: .zero)
    #expect(first.time == .milliseconds(200))
    // While the name is being looked up, another one waits for the same answer.
    let second = model.depart(to: "a:80", handshakes: 1, name: "a", at: .milliseconds(60))
    #expect(second.time == .milliseconds(200))
    let other = model.depart(to: "a:81", handshakes: 1, name: "a", at: .seconds(1))
    #expect(other.time == .milliseconds(1100))
    let address = model.depart(to: "10.0.0.1:80", handshakes: 1, name: nil, at: .seconds(1))
    #expect(address.time == .milliseconds(1100))
    let name = model.depart(to: "b:80", handshakes: 2, name: "b", at: .seconds(1))
    #expect(name.time == .milliseconds(1300))
  }

  @Test("jitter: round trips are longer by up to that much, and the same with the same seed")
  func jitter() throws {
    var (one, same, other) = (
      try model(",jitter=10ms"), try model(",jitter=10ms"), try model(",jitter=10ms", seed: 2)
    )
    var trips: [Duration] = []
    var others: [Duration] = []
    for _ in 0..<200 {
      let departure = one.depart(to: "a", handshakes: 1, at: .zero)
      #expect(same.depart(to: "a", handshakes: 1, at: .zero) == departure)
      trips += [departure.time, departure.roundTrip]
      others.append(other.depart(to: "a", handshakes: 1, at: .zero).time)
    }
    #expect(trips.allSatisfy { $0 >= .milliseconds(100) && $0 <= .milliseconds(110) })
    #expect(trips.max() ?? .zero > .milliseconds(109))
    #expect(trips.min() ?? .zero < .milliseconds(101))
    #expect(others != stride(from: 0, to: 400, by: 2).map { trips[$0] })
  }

  // MARK: With a fetcher

  private func time(
    _ simulation: SimulatedRuntime, _ fetcher: ThrottledFetcher, _ url: String,
    purpose: FetchPurpose = .segment
  ) async throws -> Double {
    let url = try #require(URL(string: url))
    let began = simulation.now
    let response = try await fetcher.fetch(FetchRequest(url: url, purpose: purpose))
    _ = try await response.body.collect(upTo: 1 << 24)
    return (simulation.now - began) / .milliseconds(1)
  }

  @Test("Requests wait for look-up and certificates")
  func fetching() async throws {
    let simulation = SimulatedRuntime()
    let link = try LinkSpec(parsing: "8Mbit/100ms,tls,dns")
    let fetcher = ThrottledFetcher(MemoryFetcher(byteCount: 1000), link: link, in: simulation)
    let times = try await simulation.run {
      var times = [try await time(simulation, fetcher, "https://a/1")]
      times.append(try await time(simulation, fetcher, "https://a/2"))
      times.append(try await time(simulation, fetcher, "http://127.0.0.1/1"))
      // The connection beside it transfers its certificates at the same time.
      times.append(try await time(simulation, fetcher, "https://[::1]/1", purpose: .source))
      return times
    }
    #expect(zip(times, [405, 101, 201, 307.896]).allSatisfy { abs($0 - $1) < 1e-6 }, "\(times)")
    let task = simulation.throwingTask { _ = try await time(simulation, fetcher, "https://c/1") }
    await simulation.run(until: simulation.now + .milliseconds(250))
    task.cancel()
    await #expect(throws: CancellationError.self) { try await simulation.run { try await task.value } }
    #expect(fetcher.transferCount == 0)
  }

  @Test("A rate of 0 for minutes delays, and nothing else")
  func silence() async throws {
    let simulation = SimulatedRuntime()
    let recording = try LinkRecording(text: Array("0 8\n1 0\n601 8\n602 8\n".utf8), name: "x")
    let fetcher = ThrottledFetcher(
      MemoryFetcher(byteCount: 2_000_000), link: LinkSpec(recording, roundTripTime: .zero), in: simulation)
    let first = try await simulation.run { try await time(simulation, fetcher, "http://a/1") }
    #expect(abs(first - 602_000) < 1)
    let second = try await simulation.run { try await time(simulation, fetcher, "http://a/1") }
    #expect(abs(second - 2000) < 1)
  }
}
