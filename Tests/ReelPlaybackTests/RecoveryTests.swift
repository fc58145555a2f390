import ReelCore
import Testing

@testable import ReelSources

@Suite struct RecoveryTests {
  private typealias Situation = Recovery.Situation

  private func next(_ kind: ReelError.Kind, status: Int? = nil, in situation: Situation) -> Recovery {
    Recovery.after(ReelError(kind, "failed", status: status), in: situation)
  }

  private func nextLive(
    _ kind: ReelError.Kind, wasRefused: Bool = true, hasStalled: Bool = false, leftOutInARow: Int = 0
  ) -> LiveRecovery {
    LiveRecovery.after(
      ReelError(kind, "failed", status: 404), wasRefused: wasRefused, hasStalled: hasStalled,
      leftOutInARow: leftOutInARow)
  }

  @Test(arguments: [ReelError.Kind.internalFault, .usage])
  func `A failure that is not the media's is thrown at once`(_ kind: ReelError.Kind) {
    #expect(next(kind, in: Situation(hasOtherRung: true, hasOtherLocation: true)) == .fail)
  }

  @Test func `A refused live segment is requested again, then skipped, and the third in a row is an error`() {
    #expect(nextLive(.server, wasRefused: false) == .again)
    #expect(nextLive(.server) == .leaveOut)
    #expect(nextLive(.server, leftOutInARow: 1) == .leaveOut)
    #expect(nextLive(.server, leftOutInARow: 2) == .fail)
  }

  @Test(arguments: [ReelError.Kind.network, .timedOut])
  func `A live segment without an answer is requested again until the stall limit`(_ kind: ReelError.Kind) {
    #expect(nextLive(kind, leftOutInARow: 2) == .again)
    #expect(nextLive(kind, hasStalled: true) == .fail)
  }

  @Test func `Without an answer another location is tried, but no other rung`() {
    #expect(next(.network, in: Situation(hasOtherRung: true, hasOtherLocation: true)) == .otherLocation)
    #expect(next(.network, in: Situation(hasOtherRung: true)) == .fail)
  }

  @Test(arguments: [ReelError.Kind.server, .timedOut, .badMedia, .badManifest, .unsupported, .noSuchFile])
  func `Another rung comes before another location`(_ kind: ReelError.Kind) {
    #expect(next(kind, in: Situation(hasOtherRung: true, hasOtherLocation: true)) == .otherRung)
    #expect(next(kind, in: Situation(hasOtherLocation: true)) == .otherLocation)
  }

  @Test func `Only a failure that is final and concerns one segment is left out`() {
    let last = Situation()
    #expect(next(.server, status: 404, in: last) == .leaveOut)
    #expect(next(.badMedia, in: last) == .leaveOut)
    #expect(next(.badManifest, in: last) == .leaveOut)
    #expect(next(.unsupported, in: last) == .fail)
    #expect(next(.server, status: 503, in: last) == .fail)
    #expect(next(.timedOut, in: last) == .fail)
    #expect(next(.network, in: last) == .fail)
  }

  @Test func `The third segment in a row is not left out`() {
    #expect(next(.badMedia, in: Situation(leftOutInARow: 1)) == .leaveOut)
    #expect(next(.badMedia, in: Situation(leftOutInARow: 2)) == .fail)
  }
}
