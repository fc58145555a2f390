public import Foundation
internal import ReelCore

/// What a cache has on disk.
public struct CacheContents: Sendable, Hashable {
  /// The number of resources of which anything is kept.
  public var entryCount: Int
  /// The number of files with parts of resources.
  public var pieceCount: Int
  /// The bytes on disk: whole blocks, with the folders.
  public var byteCount: Int64
  /// The smallest limit of the processes that have the cache open; nil if there is none.
  public var byteLimit: Int64?
  /// The time at which the resource was last used that has not been used for the longest time; nil if there is none.
  public var oldestUse: Date?
  /// The time of the last use of any resource; nil if there is none.
  public var newestUse: Date?

  init(_ survey: CacheSurvey, byteLimit: Int64?) {
    entryCount = survey.entries.count
    pieceCount = survey.pieceCount
    byteCount = survey.byteCount
    self.byteLimit = byteLimit
    oldestUse = survey.entries.map(\.time).min().map(Self.date)
    newestUse = survey.entries.map(\.time).max().map(Self.date)
  }

  private static func date(_ nanoseconds: Int64) -> Date {
    Date(timeIntervalSince1970: Double(nanoseconds) / 1e9)
  }
}

/// What is in the folder of a cache, without the bytes. It is made without the lock: what it tells may have changed
/// since.
struct CacheSurvey {
  struct Entry {
    let key: EntryKey
    /// The time of the last use, in nanoseconds since 1970.
    let time: Int64
    let hasTail: Bool
  }

  private(set) var entries: [Entry] = []
  private(set) var pieceCount = 0
  /// What all entries and the folders above them take.
  private(set) var byteCount: Int64 = 0

  /// - Parameter correctsTimes: True to make times in the future the current one, so that they pass.
  init(_ folder: borrowing OpenFolder, correctsTimes: Bool = false) throws(SystemFailure) {
    let now = Self.now
    for number in 0..<256 {
      let name = String(UInt64(number).digits.suffix(2))
      guard let group = try folder.folder(name) else { continue }
      byteCount += group.status?.cost ?? 0
      for name in try group.names() {
        guard let key = EntryKey(name: name), let entry = try group.folder(name) else { continue }
        try add(entry, key, now, correctsTimes: correctsTimes)
      }
    }
  }

  private mutating func add(
    _ entry: borrowing OpenFolder, _ key: EntryKey, _ now: Int64, correctsTimes: Bool
  ) throws(SystemFailure) {
    let status = entry.status
    byteCount += status?.cost ?? 0
    var time: Int64?
    var hasTail = false
    for name in try entry.names() {
      guard let status = entry.status(name) else { continue }
      let file = EntryFile(name: name)
      if case .piece = file { pieceCount += 1 }
      if correctsTimes, status.time > now { entry.touch(name) }
      byteCount += status.cost
      time = max(time ?? .min, min(status.time, now))
      hasTail = hasTail || file.isTail
    }
    // A killed process may leave one without files.
    entries.append(Entry(key: key, time: time ?? min(status?.time ?? now, now), hasTail: hasTail))
  }

  /// What is removed to make room, in this order: the least recently used first.
  ///
  /// Tails count as used a week earlier than they were: so heads, from which a start needs no network, outlive them,
  /// but not for ever.
  var removals: [Removal] {
    entries.flatMap { entry in
      [Removal(key: entry.key, time: entry.time, isTail: false)]
        + (entry.hasTail ? [Removal(key: entry.key, time: entry.time, isTail: true)] : [])
    }
    .sorted { $0.rank < $1.rank }
  }

  struct Removal {
    let key: EntryKey
    let time: Int64
    /// True to remove the tail alone.
    let isTail: Bool

    var rank: Int64 { isTail ? time - 604_800_000_000_000 : time }
  }

  /// The current time, in nanoseconds since 1970.
  static var now: Int64 { WallTime.now.nanosecondsSince1970 }
}
