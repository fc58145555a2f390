internal import Foundation
internal import Logging
internal import ReelCore

/// The folder of a cache on disk, which several processes may share. It knows nothing of HTTP.
///
///     FOLDER                 mode 0700
///       CACHEDIR.TAG         marks it as a cache
///       reel.lock            held by the process that changes anything
///       usage                bytes stored, smallest limit, the change that has begun (CacheUsage)
///       limit-BYTES-PID-N    a file for each open cache, locked while it is open
///       new                  the file that is being written
///       3f                   256 folders, by the first digits of the entries in them
///         3f0c…              an entry: the hash of what identifies it (EntryKey)
///           record           what its user knows of it
///           9a…-0…-3fa0…    a piece: version, first position, end
///
/// Nothing is kept in memory: an entry is found by its name, and its pieces by listing its folder. A file is written
/// as `new` under the lock, if the limit has room for it, and then gets its name. It never changes, and is read
/// without the lock. It says what it is, and has hashes (`StoredFile`). So whatever happens to a process or a file, a
/// read gives the right bytes or none.
///
/// Bytes stored are counted as `du` counts them. If there is no room, a tenth of the limit is freed: a survey of the
/// folder, without the lock, finds what was not used for the longest time, and small batches remove it. The time of
/// the last use of an entry is the latest modification time of its files.
final class CacheFolder: Sendable {
  private let path: String
  private let logger: Logger
  /// Nil if the folder can't be used.
  private let shared: SharedUsage?
  private let warnings = Locked(Warnings())
  /// Held while room is made: of several threads that need some, one makes it.
  private let trimming = Locked((), rank: .transfer)

  private struct Warnings {
    /// The time of the last one about a failure.
    var last: Duration?
    /// True once the folder has been removed.
    var isGone = false
  }

  /// The most bytes of a piece; more are stored as several.
  static let pieceByteLimit = StoredFile.byteLimit
  /// What a new file may cost besides itself: the growth of the folders above it, and a block that lists its parts.
  private static let growth = 7 * FileStatus.blockByteCount
  /// The number of files that are removed while the lock is held.
  private static let batchCount = 64

  /// Opens the folder, or makes it. If it can't be used, nothing is stored, and the log says why.
  ///
  /// If it has more than the limit, it is trimmed before this returns.
  init(at folder: URL, byteLimit: Int64, logger: Logger) {
    self.logger = logger
    path = folder.path(percentEncoded: false)
    do throws(SystemFailure) {
      shared = try SharedUsage(path: path, byteLimit: max(0, byteLimit))
    } catch {
      shared = nil
      logger.warning("the cache is not used: \(error.reason)", metadata: ["folder": "\(path)"])
    }
    trim(toByteCount: max(0, byteLimit - CacheUsage.ownCost))
  }

  // MARK: - Reading

  /// An entry's record; nil if there is none, or it is damaged.
  func record(of key: EntryKey) -> [UInt8]? {
    guard let entry = try? entry(key) else { return nil }
    return content(of: .record, key, entry)
  }

  /// At most `maximum` bytes of a version from a position on, never empty; nil if the first of them is not stored.
  /// Counts as a use of the entry.
  func read(_ key: EntryKey, version: EntryVersion, from position: Int64, maximum: Int) -> [UInt8]? {
    guard maximum > 0, let entry = try? entry(key) else { return nil }
    // Another one may have the byte if one is damaged. The one that reaches furthest comes first.
    let ranges = Self.pieces(of: version, in: entry).filter { $0.contains(position) }
    for range in ranges.sorted(by: { $0.upperBound > $1.upperBound }) {
      let bytes = content(
        of: .piece(version, range), key, entry, from: Int(position - range.lowerBound), maximum: maximum)
      if let bytes { return bytes }
    }
    return nil
  }

  /// The end of the run of stored bytes that contains `position`, over adjacent pieces; nil if that byte is not
  /// stored.
  func storedEnd(of key: EntryKey, version: EntryVersion, from position: Int64) -> Int64? {
    guard let entry = try? entry(key) else { return nil }
    var end = position
    for range in Self.pieces(of: version, in: entry).sorted(by: { $0.lowerBound < $1.lowerBound })
    where range.lowerBound <= end {
      end = max(end, range.upperBound)
    }
    return end > position ? end : nil
  }

  /// When bytes of a version were read or written last, in nanoseconds since 1970; 0 if none are stored.
  func lastUse(of key: EntryKey, version: EntryVersion) -> Int64 {
    guard let entry = try? entry(key) else { return 0 }
    var time: Int64 = 0
    for name in (try? entry.names()) ?? [] {
      if case .piece(version, _) = EntryFile(name: name) { time = max(time, entry.status(name)?.time ?? 0) }
    }
    return time
  }

  /// Where stored bytes begin again after `position`, where none is.
  func nextStart(of key: EntryKey, version: EntryVersion, after position: Int64) -> Int64? {
    guard let entry = try? entry(key) else { return nil }
    return Self.pieces(of: version, in: entry).map(\.lowerBound).filter { $0 > position }.min()
  }

  /// What all entries take on disk.
  var storedByteCount: Int64 { shared?.byteCount ?? 0 }

  // MARK: - Writing

  /// False if the record could not be stored, as with `write`.
  @discardableResult
  func setRecord(_ bytes: [UInt8], of key: EntryKey) -> Bool {
    bytes.count <= Self.pieceByteLimit && store(bytes[...], as: .record, of: key)
  }

  /// False if the bytes could not be stored: the limit, a full disk, a folder that can't be written.
  @discardableResult
  func write(_ bytes: [UInt8], at position: Int64, of key: EntryKey, version: EntryVersion) -> Bool {
    guard position >= 0, position <= .max - Int64(bytes.count) else { return false }
    return stride(from: 0, to: bytes.count, by: Self.pieceByteLimit).allSatisfy { start in
      let part = bytes[start..<min(start + Self.pieceByteLimit, bytes.count)]
      let first = position + Int64(start)
      return store(part, as: .piece(version, first..<first + Int64(part.count)), of: key)
    }
  }

  /// Removes all versions and the record.
  func remove(_ key: EntryKey) {
    // The record first: what is left if the process is killed is not taken for an entry.
    removeFiles(of: key) { $0 == .record }
    removeFiles(of: key) { _ in true }
  }

  func remove(_ key: EntryKey, exceptVersion version: EntryVersion) {
    removeFiles(of: key) {
      if case .piece(version, _) = $0 { false } else { $0 != .record }
    }
  }

  /// Removes the least recently used entries until the rest take at most this many bytes.
  func trim(toByteCount byteCount: Int64) {
    guard let shared, shared.byteCount > byteCount else { return }
    attempt { (shared) throws(SystemFailure) in try trim(shared, toByteCount: byteCount) }
  }

  // MARK: - Without opening a cache

  /// What is in a folder.
  ///
  /// - Throws: `ReelError` of kind `noSuchFile`, or `usage` if the folder isn't a cache.
  static func contents(of folder: URL) throws(ReelError) -> CacheContents {
    do throws(SystemFailure) {
      let open = try openCache(at: folder)
      let survey = try CacheSurvey(open)
      let limit = try SharedUsage.limits(in: open, removesEnded: false)
      return CacheContents(survey, byteLimit: limit)
    } catch { throw error.reelError(.noSuchFile, at: folder) }
  }

  /// Removes the entries that have not been used since a time, and returns how many, and what they took. Processes that have the
  /// cache open go on.
  ///
  /// - Parameter time: In nanoseconds since 1970.
  /// - Throws: As `contents`; `cannotWriteOutput` if the folder can't be changed.
  static func remove(
    in folder: URL, unusedSince time: Int64
  ) throws(ReelError) -> (entryCount: Int, byteCount: Int64) {
    var removed: (entryCount: Int, byteCount: Int64) = (0, 0)
    do throws(SystemFailure) {
      // A folder without a mark is empty.
      guard try SharedUsage.isMarked(openCache(at: folder)) else { return removed }
      let shared = try SharedUsage(path: folder.path(percentEncoded: false), byteLimit: nil)
      for entry in try CacheSurvey(shared.folder, correctsTimes: true).entries where entry.time <= time {
        while try !shared.locked({ (usage) throws(SystemFailure) in
          let before = usage.byteCount
          defer { removed.byteCount += before - usage.byteCount }
          return try removeFiles(of: entry.key, in: shared, &usage, unusedSince: time) { _ in true }
        }) {}
        if shared.folder.status("\(entry.key.group)/\(entry.key.name)") == nil { removed.entryCount += 1 }
      }
    } catch { throw error.reelError(.cannotWriteOutput, at: folder) }
    return removed
  }

  // MARK: - Private

  private func entry(_ key: EntryKey) throws(SystemFailure) -> OpenFolder? {
    guard let shared else { return nil }
    return try Self.entry(key, in: shared.folder)
  }

  private static func entry(
    _ key: EntryKey, in folder: borrowing OpenFolder
  ) throws(SystemFailure) -> OpenFolder? {
    try folder.folder(key.group)?.folder(key.name)
  }

  private static func pieces(of version: EntryVersion, in entry: borrowing OpenFolder) -> [Range<Int64>] {
    ((try? entry.names()) ?? []).compactMap {
      guard case .piece(version, let range) = EntryFile(name: $0) else { return nil }
      return range
    }
  }

  /// Reads a file, and removes it if it is damaged.
  private func content(
    of file: EntryFile, _ key: EntryKey, _ entry: borrowing OpenFolder, from offset: Int = 0,
    maximum: Int = StoredFile.byteLimit
  ) -> [UInt8]? {
    guard let source = try? entry.file(file.name) else { return nil }
    guard let bytes = StoredFile.decode(source, of: key, as: file, from: offset, maximum: maximum) else {
      logger.warning(
        "removed a damaged file from the cache",
        metadata: ["folder": "\(path)", "file": "\(key.name)/\(file.name)"])
      removeFiles(of: key) { $0 == file }
      return nil
    }
    source.touch()
    return bytes
  }

  private func store(_ payload: ArraySlice<UInt8>, as file: EntryFile, of key: EntryKey) -> Bool {
    let bytes = StoredFile.encode(payload, of: key, as: file)
    let need = FileStatus.cost(ofByteCount: Int64(bytes.count)) + Self.growth
    return attempt { (shared) throws(SystemFailure) in
      // Others may take the room that has been made.
      for _ in 0..<3 {
        let target = try shared.locked { (usage) throws(SystemFailure) -> Int64? in
          if usage.byteCount + need > usage.room { usage.byteLimit = try shared.smallestLimit() }
          guard usage.byteCount + need <= usage.room else {
            return min(usage.room - usage.room / 10, usage.room - need)
          }
          try shared.change(&usage, key, file) { () throws(SystemFailure) in
            try Self.put(bytes, as: file, of: key, in: shared.folder)
          }
          return nil
        }
        guard let target else { return true }
        guard target >= 0 else { return false }
        try trim(shared, toByteCount: target)
      }
      return false
    } ?? false
  }

  private static func put(
    _ bytes: [UInt8], as file: EntryFile, of key: EntryKey, in folder: borrowing OpenFolder
  ) throws(SystemFailure) {
    let group = try folder.makeFolder(key.group)
    let entry = try group.makeFolder(key.name)
    do throws(SystemFailure) {
      try? folder.removeFile(SharedUsage.newName)
      try folder.makeFile(SharedUsage.newName, O_EXCL).write(bytes)
      guard renameat(folder.descriptor, SharedUsage.newName, entry.descriptor, file.name) == 0 else {
        throw SystemFailure("can't rename a file")
      }
    } catch {
      try? folder.removeFile(SharedUsage.newName)
      group.removeFolder(key.name)
      folder.removeFolder(key.group)
      throw error
    }
  }

  /// Does work on the folder, and returns nil if that fails or nothing is stored.
  @discardableResult
  private func attempt<Result>(_ work: (SharedUsage) throws(SystemFailure) -> Result) -> Result? {
    guard let shared, !warnings.withLock({ $0.isGone }) else { return nil }
    do throws(SystemFailure) { return try work(shared) } catch {
      warn(error)
      return nil
    }
  }

  /// Logs a failure, at most one a minute.
  private func warn(_ failure: SystemFailure) {
    let now = SystemMonotonicClock().now
    let isDue = warnings.withLock { warnings in
      if failure == .folderIsGone {
        defer { warnings.isGone = true }
        return !warnings.isGone
      }
      if let last = warnings.last, now < last + .seconds(60) { return false }
      warnings.last = now
      return true
    }
    if isDue {
      logger.warning("nothing is stored in the cache: \(failure.reason)", metadata: ["folder": "\(path)"])
    }
  }

  private func removeFiles(of key: EntryKey, where isUnwanted: (EntryFile) -> Bool) {
    // Most often there are none, and the lock need not be taken.
    guard let names = try? entry(key)?.names(),
      names.isEmpty || names.map(EntryFile.init).contains(where: isUnwanted)
    else { return }
    attempt { (shared) throws(SystemFailure) in
      while try !shared.locked({ (usage) throws(SystemFailure) in
        try Self.removeFiles(of: key, in: shared, &usage, where: isUnwanted)
      }) {}
    }
  }

  /// Removes a batch of an entry's files, those with the highest positions first, until entries take at most `target`
  /// bytes. Does nothing if the entry was used after `time`. Returns false if there are more.
  private static func removeFiles(
    of key: EntryKey, in shared: SharedUsage, _ usage: inout CacheUsage, unusedSince time: Int64 = .max,
    toByteCount target: Int64 = -1, where isUnwanted: (EntryFile) -> Bool
  ) throws(SystemFailure) -> Bool {
    guard let group = try shared.folder.folder(key.group), let entry = try group.folder(key.name) else {
      return true
    }
    let names = try entry.names()
    if time < .max, names.contains(where: { entry.status($0)?.time ?? .min > time }) { return true }
    let files = names.map(EntryFile.init).filter(isUnwanted).sorted { $0.place > $1.place }
    let before = usage.byteCount
    for file in files.prefix(batchCount) where usage.byteCount > target {
      try shared.change(&usage, key, file) { () throws(SystemFailure) in try entry.removeFile(file.name) }
    }
    if files.count == names.count {
      try shared.change(&usage, key, .record) {
        // They stay if they are not empty.
        group.removeFolder(key.name)
        shared.folder.removeFolder(key.group)
      }
    }
    return files.count <= batchCount || usage.byteCount == before
  }

  private func trim(_ shared: SharedUsage, toByteCount target: Int64) throws(SystemFailure) {
    try trimming.withLock { (_) throws(SystemFailure) in
      let changeCount = try shared.locked { (usage) in usage.byteCount <= target ? nil : usage.changeCount }
      guard let changeCount else { return }
      let survey = try CacheSurvey(shared.folder, correctsTimes: true)
      try shared.locked { (usage) in
        // Somebody may have removed files by hand.
        if usage.changeCount == changeCount { usage.byteCount = survey.byteCount }
      }
      var removals = survey.removals[...]
      while let removal = removals.first {
        let isDone = try shared.locked { (usage) throws(SystemFailure) in
          if usage.byteCount <= target { return true }
          let isComplete = try Self.removeFiles(
            of: removal.key, in: shared, &usage, unusedSince: removal.time + 60_000_000_000,
            toByteCount: target, where: { $0.isTail || !removal.isTail })
          if isComplete { removals.removeFirst() }
          return false
        }
        if isDone { return }
      }
    }
  }

  /// Opens a folder, which is a cache or can become one.
  private static func openCache(at folder: URL) throws(SystemFailure) -> OpenFolder {
    let open = try OpenFolder(path: folder.path(percentEncoded: false))
    guard try SharedUsage.isCache(open) else { throw .isNoCache }
    return open
  }
}
