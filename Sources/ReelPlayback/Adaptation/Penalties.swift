/// What has failed and is left alone for a while: rungs by id, locations by URL.
///
/// The first failure of a key costs `baseDuration`, each further one twice as long as the one before, up to
/// `maximumDuration`. A failure during a penalty changes nothing: it comes of work that was begun before. A key that
/// had no failure for `maximumDuration` after its penalty begins anew.
///
/// A value without a clock: `now` is the time by the clock of the player, and never falls.
package struct Penalties<Key: Hashable & Sendable>: Sendable {
  package let baseDuration: Duration
  package let maximumDuration: Duration

  private var entries: [Key: Entry] = [:]

  package init(baseDuration: Duration = .seconds(60), maximumDuration: Duration = .seconds(480)) {
    self.baseDuration = baseDuration
    self.maximumDuration = maximumDuration
  }

  /// Leaves `key` alone from `now` on.
  ///
  /// - Returns: When the penalty ends.
  @discardableResult
  package mutating func penalize(_ key: Key, now: Duration) -> Duration {
    // What is forgotten is thrown away here, so that keys that never come again are not kept.
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
