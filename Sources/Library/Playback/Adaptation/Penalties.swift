/// Keys that have failed and are avoided for a while: rungs by id, locations by URL.
///
/// The first failure of a key costs `baseDuration`, each further one twice as long as the previous one, up to
/// `maximumDuration`. A failure during a penalty changes nothing, because it belongs to work begun earlier. If
/// a key has no failure for `maximumDuration` after its penalty, the next one counts as the first again.
///
/// A value without a clock: `now` is the time by the player's clock, and never falls.
package struct Penalties<Key: Hashable & Sendable>: Sendable {
  package let baseDuration: Duration
  package let maximumDuration: Duration

  private var entries: [Key: Entry] = [:]

  package init(baseDuration: Duration = .seconds(60), maximumDuration: Duration = .seconds(480)) {
    self.baseDuration = baseDuration
    self.maximumDuration = maximumDuration
  }

  /// Avoids `key` from `now` on.
  ///
  /// - Returns: When the penalty ends.
  @discardableResult
  package mutating func penalize(_ key: Key, now: Duration) -> Duration {
    // Removes entries that no longer have an effect, so that old keys do not accumulate.
    entries = entries.filter { now < $0.value.end + maximumDuration }
    if let entry = entries[key], now < entry.end { return entry.end }
    let length = entries[key].map { min($0.length * 2, maximumDuration) } ?? baseDuration
    entries[key] = Entry(length: length, end: now + length)
    return now + length
  }

  package func isPenalized(_ key: Key, now: Duration) -> Bool {
    entries[key].map { now < $0.end } ?? false
  }

  // MARK: - Private

  private struct Entry: Sendable {
    var length: Duration
    var end: Duration
  }
}
