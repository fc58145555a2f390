internal import Foundation

/// A link as the times between requests on the same connection show it.
///
/// The next request on a connection comes when the answer to the one before has crossed the link. After a small answer that
/// takes a round trip and the player's own time; after a large one also the time that its bytes need.
package struct LinkEstimate: Sendable, Hashable {
  package let bitsPerSecond: Int64
  package let roundTripTime: Duration

  struct Maker {
    private var last: [Int: RecordedRequest] = [:]
    /// The times after small answers, in milliseconds, and the sizes and times of large ones.
    private var small: [Double] = []
    private var large: [(byteCount: Double, milliseconds: Double)] = []

    private static let limit = 10_000
    private static let smallByteCount = 8 << 10
    private static let largeByteCount = 64 << 10

    var isFull: Bool { large.count >= Self.limit }

    mutating func add(_ request: RecordedRequest) {
      defer { last[request.connection] = request.lastByteMs == nil ? nil : request }
      if last.count > Self.limit { last = [:] }
      guard let before = last[request.connection] else { return }
      let milliseconds = request.receivedMs - before.receivedMs
      guard milliseconds > 0 else { return }
      if before.bytes >= Self.largeByteCount {
        large.append((Double(before.bytes), milliseconds))
      } else if before.bytes <= Self.smallByteCount, small.count < Self.limit {
        small.append(milliseconds)
      }
    }

    var estimate: LinkEstimate? {
      // Many requests wait until the player needs more: the shorter times count.
      let roundTrip = small.sorted().dropFirst(small.count / 10).first ?? 0
      let rates = large.map { $0.byteCount * 8e3 / max($0.milliseconds - roundTrip, 1) }.sorted()
      guard let rate = rates.dropFirst(rates.count * 3 / 4).first, rate < 1e13 else { return nil }
      return LinkEstimate(
        bitsPerSecond: max(1, Int64(rate)), roundTripTime: .milliseconds(min(roundTrip.rounded(), 60_000)))
    }
  }
}
