/// The penalties of a ladder's rungs, by `RungCandidate.id`.
package typealias RungPenalties = Penalties<String>

extension Penalties<String> {
  /// Returns the candidates without a penalty, in the same order. If there are none, the caller goes to the
  /// next location or waits until `nextEnd(now:)`.
  package func usable(_ candidates: [RungCandidate], now: Duration) -> [RungCandidate] {
    candidates.filter { !isPenalized($0.id, now: now) }
  }
}
