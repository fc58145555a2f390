import ReelCore
import ReelPlayback
import Testing

@Suite("Opening an item again")
struct ItemRetryPolicyTests {
  private let lost = ReelError(.network, "connection lost")

  @Test("Five pauses, each twice as long, then none")
  func growth() {
    var policy = ItemRetryPolicy()
    #expect(policy.remaining == 5)
    let delays = (0..<7).map { _ in policy.next(after: lost) }
    #expect(delays == [.milliseconds(500), .seconds(1), .seconds(2), .seconds(4), .seconds(8), nil, nil])
    #expect(policy.remaining == 0)
  }

  @Test("No pause is longer than the maximum")
  func maximum() {
    var policy = ItemRetryPolicy(attempts: 1_000, baseDelay: .seconds(1), maximumDelay: .seconds(3))
    let delays = (0..<1_000).map { _ in policy.next(after: lost) }
    #expect(delays.prefix(3) == [.seconds(1), .seconds(2), .seconds(3)])
    #expect(delays.dropFirst(2).allSatisfy { $0 == .seconds(3) })
    var long = ItemRetryPolicy(baseDelay: .seconds(20), maximumDelay: .seconds(3))
    #expect(long.next(after: lost) == .seconds(3))
  }

  @Test("What is final ends it, and costs no attempt")
  func final() {
    var policy = ItemRetryPolicy()
    #expect(policy.next(after: ReelError(.server, "404 Not Found", status: 404)) == nil)
    #expect(policy.next(after: ReelError(.badMedia, "x")) == nil)
    #expect(policy.remaining == 5)
    #expect(policy.next(after: ReelError(.server, "503", status: 503)) == .milliseconds(500))
    #expect(policy.next(after: ReelError(.timedOut, "x")) == .seconds(1))
  }

  @Test("A pause is at least as long as the server asks for, unless that is too long")
  func retryAfter() {
    var policy = ItemRetryPolicy()
    var busy = ReelError(.server, "429 Too Many Requests", status: 429)
    busy.retryAfter = .milliseconds(1500)
    let delays = (0..<3).map { _ in policy.next(after: busy) }
    #expect(delays == [.milliseconds(1500), .milliseconds(1500), .seconds(2)])
    busy.retryAfter = .seconds(3600)
    #expect(policy.next(after: busy) == .seconds(4))
  }

  @Test("Playing restores the attempts and the pauses")
  func success() {
    var policy = ItemRetryPolicy(attempts: 2)
    _ = policy.next(after: lost)
    _ = policy.next(after: lost)
    policy.succeed()
    #expect(policy.remaining == 2)
    #expect(policy.next(after: lost) == .milliseconds(500))
  }

  @Test("No attempts", arguments: [0, -3])
  func none(attempts: Int) {
    var policy = ItemRetryPolicy(attempts: attempts)
    #expect(policy.next(after: lost) == nil)
    #expect(policy.remaining == 0)
  }
}
