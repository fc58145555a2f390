internal import Foundation
internal import ReelCore

/// What all processes that share a folder know of it: how much is stored, and how much may be.
///
/// It is kept in the file `usage`, which is read and written only under the lock of the folder. Every change is
/// entered before it is made: if a process is killed within it, the next one measures what has become of it.
struct CacheUsage {
  /// A change of one file that has begun.
  struct Change {
    let key: String
    let file: String
    /// What the file and the folders above it took before.
    let cost: Int64
  }

  /// The bytes that all entries and their folders take.
  var byteCount: Int64
  /// The smallest limit of all processes; the largest number if there is none.
  var byteLimit = Int64.max
  /// The number of changes so far.
  var changeCount = 0
  var change: Change?

  init(byteCount: Int64) { self.byteCount = byteCount }

  /// The size of the file: one that is written over leaves nothing of the text before.
  static let fileByteCount = 256

  /// Returns nil if the text is not as it was written.
  init?(_ bytes: [UInt8]) {
    let fields = String(decoding: bytes, as: UTF8.self).split(separator: " ")
    guard fields.count == 8, fields[0] == "1", let byteCount = Int64(fields[1]),
      let byteLimit = Int64(fields[2]),
      let changeCount = Int(fields[3]), let cost = Int64(fields[6])
    else { return nil }
    self.byteCount = byteCount
    self.byteLimit = byteLimit
    self.changeCount = changeCount
    if fields[4] != "-" { change = Change(key: String(fields[4]), file: String(fields[5]), cost: cost) }
    guard bytes == self.bytes else { return nil }
  }

  var bytes: [UInt8] {
    let change = change ?? Change(key: "-", file: "-", cost: 0)
    let text = "1 \(byteCount) \(byteLimit) \(changeCount) \(change.key) \(change.file) \(change.cost) "
    let bytes = Array((text + EntryKey(hashing: [text]).name).utf8)
    return bytes + [UInt8](repeating: UInt8(ascii: " "), count: max(0, Self.fileByteCount - bytes.count))
  }

  /// What entries may take: the limit without the folder itself and the files in it.
  var room: Int64 { byteLimit - Self.ownCost }

  static let ownCost = 8 * FileStatus.blockByteCount
}

/// The lock of a folder, and the files about the folder as a whole.
///
/// A limit is registered as an empty file `limit-BYTES-PROCESS-NUMBER`, whose lock is held while the cache is open. So
/// those of killed processes are recognized.
final class SharedUsage: Sendable {
  private static let mark = """
    Signature: 8a477f597d28d172789f06886806bc55
    # Media cached by Reel, format 1. All of it may be deleted.
    # See https://bford.info/cachedir/

    """
  private static let markName = "CACHEDIR.TAG"
  private static let lockName = "reel.lock"
  private static let usageName = "usage"
  /// The file that is being written. There is one at most, because it is written under the lock.
  static let newName = "new"

  /// The registered limit.
  private final class Limit: Sendable {
    let name: String
    let file: OpenFile

    init(name: String, file: consuming OpenFile) {
      self.name = name
      self.file = file
    }
  }

  let folder: OpenFolder
  private let path: String
  private let lock: OpenFile
  private let limit: Limit?
  /// The time until which another process is taken to have stopped with the lock in its hands. Threads of this process
  /// hold it while they hold or await the lock of the folder.
  private let stoppedUntil = Locked(Duration.zero)

  /// Opens a folder, and makes it a cache if it is empty.
  ///
  /// - Parameter byteLimit: The limit to register; nil to register none, for a folder that is a cache.
  init(path: String, byteLimit: Int64?) throws(SystemFailure) {
    self.path = path
    if byteLimit != nil { try Self.makeFolder(at: path) }
    folder = try OpenFolder(path: path)
    guard folder.status?.owner == geteuid() || geteuid() == 0, try Self.isCache(folder) else {
      throw .isNoCache
    }
    if byteLimit != nil { fchmod(folder.descriptor, 0o700) }
    lock = try folder.makeFile(Self.lockName)
    guard let byteLimit else {
      limit = nil
      return
    }
    limit = try Self.register(byteLimit, in: folder)
    try locked { (usage) throws(SystemFailure) in
      if try !Self.isMarked(folder) {
        let mark = try folder.makeFile(Self.markName)
        try mark.write(Array(Self.mark.utf8))
        // After a loss of power, a folder that has lost its mark would be taken for another's.
        mark.synchronize()
      }
      usage.byteLimit = try smallestLimit()
    }
  }

  deinit { if let name = limit?.name { try? folder.removeFile(name) } }

  /// Calls `body` with the usage while no other process changes the folder. What `body` changes is written.
  ///
  /// - Throws: `SystemFailure`, also if the folder is no longer at its path.
  func locked<Result>(_ body: (inout CacheUsage) throws(SystemFailure) -> Result) throws(SystemFailure)
    -> Result
  {
    try stoppedUntil.withLock { (stoppedUntil) throws(SystemFailure) -> Result in
      try takeLock(&stoppedUntil)
      defer { lock.unlock() }
      guard isThere else { throw .folderIsGone }
      var usage = try readUsage()
      let result = try body(&usage)
      try write(usage)
      return result
    }
  }

  /// Makes a change of one file of an entry, and counts it. Only within `locked`.
  func change(
    _ usage: inout CacheUsage, _ key: EntryKey, _ file: EntryFile,
    _ body: () throws(SystemFailure) -> Void
  ) throws(SystemFailure) {
    let before = cost(key.name, file.name)
    usage.change = CacheUsage.Change(key: key.name, file: file.name, cost: before)
    try write(usage)
    defer { finish(&usage) }
    try body()
  }

  /// The bytes that all entries take, by the last change of any process.
  var byteCount: Int64 {
    // It may be read while it is written.
    for _ in 0..<3 {
      if let usage = try? storedUsage() { return usage.byteCount }
    }
    return 0
  }

  /// The smallest limit of the caches that are open. Only within `locked`.
  func smallestLimit() throws(SystemFailure) -> Int64 {
    try Self.limits(in: folder, removesEnded: true) ?? .max
  }

  /// The smallest limit of the caches that have a folder open; nil if there is none.
  ///
  /// - Parameter removesEnded: True to remove the files of those that have ended.
  static func limits(in folder: borrowing OpenFolder, removesEnded: Bool) throws(SystemFailure) -> Int64? {
    var smallest: Int64?
    for name in try folder.names() where name.hasPrefix("limit-") {
      let fields = name.split(separator: "-")
      guard fields.count == 4, let limit = Int64(fields[1]), let file = try folder.file(name) else {
        continue
      }
      if !file.lock() {
        smallest = min(smallest ?? .max, limit)
      } else if removesEnded {
        // While it is locked: if its process is only about to lock it, that finds it gone, and makes another.
        try? folder.removeFile(name)
      }
    }
    return smallest
  }

  /// True for a cache, and for a folder that can become one.
  static func isCache(_ folder: borrowing OpenFolder) throws(SystemFailure) -> Bool {
    // In this order, because another process may be making it a cache.
    if try folder.names().allSatisfy({ isUnfinished($0, in: folder) }) { return true }
    return try isMarked(folder)
  }

  /// True for a folder with the mark of a cache.
  static func isMarked(_ folder: borrowing OpenFolder) throws(SystemFailure) -> Bool {
    try folder.file(markName)?.read(mark.utf8.count, at: 0) == Array(mark.utf8)
  }

  // MARK: - Private

  /// True for what a process leaves that is killed while it makes a folder a cache.
  private static func isUnfinished(_ name: String, in folder: borrowing OpenFolder) -> Bool {
    (name == lockName || name == markName || name.hasPrefix("limit-")) && folder.status(name)?.byteCount == 0
  }

  private static func register(
    _ byteLimit: Int64, in folder: borrowing OpenFolder
  ) throws(SystemFailure) -> Limit {
    while true {
      let name = "limit-\(byteLimit)-\(getpid())-\(UInt32.random(in: 0 ... .max))"
      let file = try folder.makeFile(name, O_EXCL)
      try file.awaitLock()
      if file.status?.isLinked == true { return Limit(name: name, file: file) }
    }
  }

  private static func makeFolder(at path: String) throws(SystemFailure) {
    do {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch { throw SystemFailure("can't make the folder", code: 0) }
  }

  /// Waits at most two seconds, then not again for ten.
  private func takeLock(_ stoppedUntil: inout Duration) throws(SystemFailure) {
    let clock = SystemMonotonicClock()
    let start = clock.now
    var pause: UInt32 = 50
    while !lock.lock() {
      guard errno == EWOULDBLOCK || errno == EINTR else { throw SystemFailure("can't lock the folder") }
      guard start >= stoppedUntil, clock.now < start + .seconds(2) else {
        if start >= stoppedUntil { stoppedUntil = clock.now + .seconds(10) }
        throw SystemFailure("another process keeps the folder locked", code: 0)
      }
      usleep(pause)
      pause = min(pause * 2, 2_000)
    }
    stoppedUntil = .zero
  }

  /// False if somebody has removed or replaced the folder or what is in it.
  private var isThere: Bool {
    var status = stat()
    return stat(path, &status) == 0 && FileStatus(status).isSame(as: folder.status)
      && lock.status?.isLinked == true
  }

  /// Nil if it has been lost or damaged.
  private func storedUsage() throws(SystemFailure) -> CacheUsage? {
    try folder.file(Self.usageName)?.read(CacheUsage.fileByteCount, at: 0).flatMap(CacheUsage.init)
  }

  private func readUsage() throws(SystemFailure) -> CacheUsage {
    guard var usage = try storedUsage() else {
      try? folder.removeFile(Self.newName)
      var usage = CacheUsage(byteCount: try CacheSurvey(folder).byteCount)
      usage.byteLimit = try smallestLimit()
      return usage
    }
    if usage.change != nil { finish(&usage) }
    return usage
  }

  /// Measures what has become of a change.
  private func finish(_ usage: inout CacheUsage) {
    guard let change = usage.change else { return }
    try? folder.removeFile(Self.newName)
    usage.byteCount += cost(change.key, change.file) - change.cost
    usage.changeCount += 1
    usage.change = nil
    // If this fails, the next process measures the change once more.
    try? write(usage)
  }

  /// What a file and the folders above it take.
  private func cost(_ key: String, _ file: String) -> Int64 {
    let group = String(key.prefix(2))
    return [group, "\(group)/\(key)", "\(group)/\(key)/\(file)"].reduce(0) {
      $0 + (folder.status($1)?.cost ?? 0)
    }
  }

  private func write(_ usage: CacheUsage) throws(SystemFailure) {
    try folder.makeFile(Self.usageName).write(usage.bytes)
  }
}
