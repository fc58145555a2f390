/// The penalties of a ladder's rungs, by `RungCandidate.id`.
package typealias RungPenalties = Penalties<String>

extension Penalties<String> {
  /// Those of `candidates` that are under no penalty, in the same order. Empty where all are: the caller then goes to
  /// the next location, or waits until `nextEnd(now:)`.
  package func usable(_ candidates: [RungCandidate], now: Duration) -> [RungCandidate] {
    candidates.filter { !isPenalized($0.id, now: now) }
  }
}
