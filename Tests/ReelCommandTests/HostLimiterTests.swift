import ReelTestSupport
import Testing

@testable import ReelCommand

@Suite("Limits of hosts", .hangLimit)
struct HostLimiterTests {
  private typealias Limiter = HostLimiter<String>

  /// The sources that can be begun at a time, with their tickets.
  private func begin(
    _ limiter: inout Limiter, at time: Duration = .zero, isDrained: Bool = true
  ) -> (items: [String], tickets: [Limiter.Ticket]) {
    var (items, tickets): ([String], [Limiter.Ticket]) = ([], [])
    while case .start(let item, let ticket) = limiter.next(at: time, isDrained: isDrained) {
      items.append(item)
      tickets.append(ticket)
    }
    return (items, tickets)
  }

  private func limiter(_ limits: Limiter.Limits, _ items: [String]) -> Limiter {
    var limiter = Limiter(limits: limits)
    for item in items { limiter.add(item, host: String(item.prefix { $0.isLetter })) }
    return limiter
  }

  @Test("How long a host is held back")
  func held() {
    var limiter = limiter(.init(), ["a1"])
    #expect(limiter.heldUntil("a", at: .zero) == nil && limiter.heldUntil("z", at: .zero) == nil)
    limiter.hold("z", for: .seconds(5), at: .seconds(1))
    #expect(limiter.heldUntil("z", at: .seconds(2)) == .seconds(6))
    #expect(limiter.heldUntil("z", at: .seconds(6)) == nil)
    limiter.hold("y", for: .seconds(10_000), at: .zero)
    #expect(limiter.heldUntil("y", at: .seconds(1)) == nil)
  }

  @Test("Hosts take turns, each with so many sources at once")
  func perHost() throws {
    var limiter = limiter(.init(perHost: 2), ["a1", "a2", "a3", "a4", "b1", "c1"])
    let first = begin(&limiter)
    #expect(first.items == ["a1", "b1", "c1", "a2"])
    #expect(limiter.waitingCount == 2)
    guard case .none = limiter.next(at: .zero, isDrained: true) else {
      Issue.record("a third source of a host")
      return
    }
    limiter.finished(first.tickets[0], .answered)
    #expect(begin(&limiter).items == ["a3"])
  }

  @Test("The rate of a host: evenly spaced, and no burst after a pause")
  func rate() throws {
    var limiter = limiter(.init(interval: .milliseconds(500)), ["a1", "a2", "a3", "b1"])
    #expect(begin(&limiter).items == ["a1", "b1"])
    guard case .wait(let time) = limiter.next(at: .zero, isDrained: true) else {
      Issue.record("no wait")
      return
    }
    #expect(time == .milliseconds(500))
    #expect(begin(&limiter, at: .seconds(5)).items == ["a2"])
    #expect(begin(&limiter, at: .milliseconds(5_499)).items.isEmpty)
    #expect(begin(&limiter, at: .milliseconds(5_500)).items == ["a3"])
  }

  @Test("A host that asks for a pause is held back; one that asks for hours is left alone")
  func retryAfter() throws {
    var limiter = limiter(.init(), ["a1", "b1"])
    limiter.hold("a", for: .seconds(20), at: .seconds(1))
    #expect(begin(&limiter, at: .seconds(2)).items == ["b1"])
    #expect(limiter.isHeld("a", at: .seconds(2)))
    guard case .wait(let time) = limiter.next(at: .seconds(2), isDrained: true) else {
      Issue.record("no wait")
      return
    }
    #expect(time == .seconds(21))
    limiter.hold("a", for: .seconds(3600), at: .seconds(3))
    #expect(!limiter.isHeld("a", at: .seconds(3)))
    guard case .giveUp(let item, let host) = limiter.next(at: .seconds(3), isDrained: true) else {
      Issue.record("not given up")
      return
    }
    #expect(item == "a1")
    #expect(host == "a")
    #expect(limiter.waitingCount == 0)
  }

  @Test("A host that fails three times in a row comes last; after three more it is given up")
  func failures() throws {
    var limiter = limiter(.init(perHost: 3), ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "b1", "b2"])
    let first = begin(&limiter)
    #expect(first.items == ["a1", "b1", "a2", "b2", "a3"])
    for ticket in first.tickets where ticket.host == "a" {
      limiter.finished(ticket, .failedTemporarily)
    }
    limiter.add("b3", host: "b")
    // While more may come, and before others are begun, the host waits.
    let second = begin(&limiter, isDrained: false)
    #expect(second.items == ["b3"])
    for item in ["a4", "a5", "a6"] {
      let probe = begin(&limiter)
      #expect(probe.items == [item])
      for ticket in probe.tickets { limiter.finished(ticket, .failedTemporarily) }
    }
    var left: [String] = []
    while case .giveUp(let item, _) = limiter.next(at: .zero, isDrained: true) { left.append(item) }
    #expect(left == ["a7", "a8"])
    // What is added later is given up at once.
    limiter.add("a9", host: "a")
    guard case .giveUp = limiter.next(at: .zero, isDrained: false) else {
      Issue.record("not given up")
      return
    }
  }

  @Test("A postponed host that answers is a host like others; late failures do not count twice")
  func recovery() throws {
    var limiter = limiter(.init(), (1...12).map { "a\($0)" })
    let first = (0..<6).compactMap { _ in
      if case .start(_, let ticket) = limiter.next(at: .zero, isDrained: false) { ticket } else { nil }
    }
    // Six were open when the host began to fail.
    for ticket in first { limiter.finished(ticket, .failedTemporarily) }
    #expect(begin(&limiter, isDrained: false).items.isEmpty)
    let probe = begin(&limiter)
    #expect(probe.items == ["a7"])
    limiter.finished(probe.tickets[0], .answered)
    #expect(begin(&limiter, isDrained: false).items == ["a8", "a9", "a10", "a11", "a12"])
  }

  @Test("Local files have no limits")
  func files() {
    var limiter = Limiter(limits: .init(perHost: 1, interval: .seconds(1)))
    for number in 0..<5 { limiter.add("\(number)", host: "") }
    let (items, tickets) = begin(&limiter)
    #expect(items.count == 5)
    for ticket in tickets { limiter.finished(ticket, .failedTemporarily) }
    limiter.add("5", host: "")
    #expect(begin(&limiter).items == ["5"])
  }
}
