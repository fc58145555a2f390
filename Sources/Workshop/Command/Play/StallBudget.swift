import ReelPool

/// The stalls of a source, weighed against the media that was played between them.
///
/// A stream that stalls now and then plays to its end. One that trickles in is given up, although no single wait is too long:
/// each second played makes up for ten seconds of stalls.
struct StallBudget: Sendable {
  private static let worth = 10

  /// The stalls, and the media played, since nothing was left to make up for.
  private(set) var stalled = Duration.zero
  private(set) var played = Duration.zero
  private var debt = Duration.zero
  private var last = (stalled: Duration.zero, played: Duration.zero)

  /// Counts what has happened since the last call.
  ///
  /// - Parameters:
  ///   - stalled: The time of all stalls so far.
  ///   - played: The media time played so far.
  ///   - limit: The longest time that counts as a stall since the last call.
  mutating func update(stalled: Duration, played: Duration, atMost limit: Duration) {
    let step = (stalled: min(stalled - last.stalled, limit), played: played - last.played)
    last = (stalled, played)
    debt = max(.zero, debt + step.stalled - step.played * Self.worth)
    (self.stalled, self.played) =
      debt == .zero ? (.zero, .zero) : (self.stalled + step.stalled, self.played + step.played)
  }

  /// Returns true if the stalls that no media played since makes up for have reached `limit`.
  func exceeds(_ limit: Duration) -> Bool { debt >= limit }

  /// What is wrong with the source.
  var reason: String {
    "media arrives too slowly: \(DurationText.readable(stalled)) of stalls for "
      + "\(DurationText.readable(played)) played"
  }
}
