import Foundation
import ReelCore
import ReelSimulation
import Testing

/// The link brings a byte each microsecond, and a round trip takes 100 ms.
@Suite("Requests of players over a modelled link")
struct LinkTrafficTests {
  private func traffic(_ change: (inout LinkTraffic.Client) -> Void) throws -> LinkTraffic {
    var client = LinkTraffic.Client()
    change(&client)
    return LinkTraffic(LinkModel(try LinkSpec(parsing: "8Mbit/100ms")), client: client)
  }

  private func request(_ path: String, _ count: Int64 = 1000) throws -> LinkPlayback.Request {
    LinkPlayback.Request(try #require(URL(string: "http://10.0.0.1/\(path)")), byteCount: count)
  }

  private func ends(_ traffic: inout LinkTraffic) -> [Double?] {
    traffic.take(by: .zero)
    while let next = traffic.nextTime { traffic.take(by: next) }
    return traffic.exchanges.map { $0.endedAt.map { $0 / .milliseconds(1) } }
  }

  @Test("Requests beyond the limit of connections wait for one")
  func limit() throws {
    var traffic = try traffic { $0.connectionLimit = 2 }
    for path in ["a", "b", "c", "d"] { _ = traffic.send(try request(path), at: .zero) }
    #expect(ends(&traffic) == [201, 202, 302, 303])
  }

  @Test("HTTP/2 sends all at once over one connection")
  func multiplexed() throws {
    var traffic = try traffic { client in
      client.connectionLimit = 1
      client.multiplexes = true
    }
    for path in ["a", "b", "c"] { _ = traffic.send(try request(path), at: .zero) }
    #expect(ends(&traffic) == [201, 202, 203])
    let last = traffic.send(try request("d"), at: .milliseconds(300))
    _ = ends(&traffic)
    #expect(traffic.exchanges[last].endedAt == .milliseconds(401))
  }

  @Test("A connection that is not kept is opened again")
  func unkept() throws {
    var traffic = try traffic { $0.keepsConnections = false }
    _ = traffic.send(try request("a"), at: .zero)
    _ = ends(&traffic)
    _ = traffic.send(try request("b"), at: .milliseconds(300))
    #expect(ends(&traffic) == [201, 501])
  }

  @Test("A cancelled request leaves the link to others, and its connection is closed")
  func cancelled() throws {
    var traffic = try traffic { $0.connectionLimit = 1 }
    let long = traffic.send(try request("a", 1_000_000), at: .zero)
    _ = traffic.send(try request("b"), at: .zero)
    traffic.take(by: .zero)
    while let next = traffic.nextTime, next <= .milliseconds(300) { traffic.take(by: next) }
    traffic.cancel(long, at: .milliseconds(300))
    #expect(ends(&traffic) == [300, 501])
    let cut = traffic.exchanges[long]
    #expect(!cut.isComplete && (90_000...101_000).contains(cut.arrivedCount))
    #expect(traffic.arrivedCount(of: [long]) == Int64(cut.arrivedCount))
  }

  @Test("An answer in a cache comes at once and takes nothing from the link")
  func known() throws {
    var traffic = try traffic { _ in }
    let number = traffic.send(try request("a"), knownByteCount: .max, at: .seconds(1))
    #expect(traffic.exchanges[number].endedAt == .seconds(1))
    #expect(traffic.arrivedCount(of: [number]) == 0)
  }
}
