import Foundation
import ReelTransport
import Testing

@testable import ReelTransport

@Suite("Retry policy")
struct RetryPolicyTests {
  @Test("Pauses grow by the factor up to their maximum, as often as there are attempts")
  func growth() {
    let policy = RetryPolicy(attempts: 6, baseDelay: .milliseconds(250), factor: 2, maximumDelay: .seconds(3))
    let delays = (1...7).map { policy.delay(afterFailure: $0, random: 0) }
    #expect(
      delays == [
        .milliseconds(250), .milliseconds(500), .seconds(1), .seconds(2), .seconds(3), .seconds(3), nil,
      ])
  }

  @Test("Chance makes pauses shorter, by the jitter at most")
  func jitter() throws {
    let policy = RetryPolicy(baseDelay: .seconds(1), jitter: 0.5)
    #expect(policy.delay(afterFailure: 1, random: 0) == .seconds(1))
    #expect(policy.delay(afterFailure: 1, random: 0.5) == .milliseconds(750))
    let shortest = try #require(policy.delay(afterFailure: 1, random: 0.999_999))
    #expect(shortest > .milliseconds(499))
    #expect(RetryPolicy(baseDelay: .seconds(1), jitter: 0).delay(afterFailure: 1, random: 0.9) == .seconds(1))
  }

  @Test("A server's wish makes pauses longer, and ends them where it is too much")
  func retryAfter() {
    let policy = RetryPolicy(baseDelay: .seconds(1), jitter: 0, maximumRetryAfter: .seconds(10))
    #expect(policy.delay(afterFailure: 1, retryAfter: .seconds(5), random: 0) == .seconds(5))
    #expect(policy.delay(afterFailure: 1, retryAfter: .zero, random: 0) == .seconds(1))
    #expect(policy.delay(afterFailure: 1, retryAfter: .seconds(10), random: 0) == .seconds(10))
    #expect(policy.delay(afterFailure: 1, retryAfter: .seconds(11), random: 0) == nil)
  }

  @Test("Never means never")
  func never() {
    #expect(RetryPolicy.never.delay(afterFailure: 1, random: 0) == nil)
    #expect(RetryPolicy().delay(afterFailure: 0, random: 0) == nil)
  }

  @Test("Many attempts and absurd factors do not overflow")
  func extremes() {
    let policy = RetryPolicy(attempts: .max, baseDelay: .seconds(1), factor: 1e6, maximumDelay: .seconds(8))
    #expect(policy.delay(afterFailure: 1_000, random: 0) == .seconds(8))
  }
}

@Suite("Header fields of HTTP")
struct HeaderFieldTests {
  @Test("Retry-After in seconds and as a date")
  func retryAfter() {
    let now = Date(timeIntervalSince1970: 1_445_412_420)
    #expect(RetryAfter.duration("120") == .seconds(120))
    #expect(RetryAfter.duration(" 0 ") == .zero)
    #expect(RetryAfter.duration("Wed, 21 Oct 2015 07:28:00 GMT", now: now) == .seconds(60))
    #expect(RetryAfter.duration("Wed, 21 Oct 2015 07:20:00 GMT", now: now) == .zero)
    #expect(RetryAfter.duration("Fri, 31 Dec 9999 23:59:59 GMT", now: now) == .seconds(251_956_888_379))
    #expect(RetryAfter.duration("99999999999999999999") == .seconds(1 << 31))
    for text in ["", "soon", "-1", "1.5", nil] { #expect(RetryAfter.duration(text) == nil) }
  }
}
