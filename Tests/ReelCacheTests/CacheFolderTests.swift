import Foundation
import Logging
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelCache

@Suite("The folder of a cache", .hangLimit)
struct CacheFolderTests {
  private let parent: TemporaryFolder
  private let log = LogLines()
  private var url: URL { parent.url.appending(path: "cache") }

  init() throws { parent = try TemporaryFolder() }

  private func open(_ byteLimit: Int64 = 10_000_000) -> CacheFolder {
    CacheFolder(at: url, byteLimit: byteLimit, logger: log.logger)
  }

  private func key(_ number: Int) -> EntryKey { EntryKey(hashing: ["https://example.com/\(number)"]) }

  /// The paths of an entry's files.
  private func files(_ key: EntryKey) -> [String] {
    let folder = "cache/\(key.group)/\(key.name)"
    return parent.names(folder).map { parent.path("\(folder)/\($0)") }
  }

  private func setUse(_ key: EntryKey, daysAgo: Double) throws {
    for path in files(key) {
      try FileManager.default.setAttributes(
        [.modificationDate: Date(timeIntervalSinceNow: -daysAgo * 86_400)], ofItemAtPath: path)
    }
  }

  /// What `du` counts.
  private func diskUsage() -> Int64 {
    var paths = FileManager.default.subpaths(atPath: url.path) ?? []
    paths.append("")
    return paths.reduce(0) { sum, path in
      var status = stat()
      return lstat(url.appending(path: path).path, &status) == 0 ? sum + Int64(status.st_blocks) * 512 : sum
    }
  }

  private func trimByOneFile(_ cache: CacheFolder) { cache.trim(toByteCount: cache.storedByteCount - 1) }

  // MARK: - Reading and writing

  @Test("Pieces and a record are read by a later process as they were written")
  func readsWhatWasWritten() {
    let bytes = content(500_000, seed: 1)
    do {
      let cache = open()
      #expect(cache.record(of: key(1)) == nil)
      #expect(cache.setRecord([1, 2, 3], of: key(1)))
      // The first is stored as two pieces.
      #expect(cache.write(Array(bytes[..<300_000]), at: 0, of: key(1), version: 7))
      #expect(cache.write(Array(bytes[400_000...]), at: 400_000, of: key(1), version: 7))
    }
    let cache = open()
    #expect(cache.record(of: key(1)) == [1, 2, 3])
    #expect(cache.storedEnd(of: key(1), version: 7, from: 5) == 300_000)
    #expect(cache.storedEnd(of: key(1), version: 7, from: 300_000) == nil)
    #expect(cache.nextStart(of: key(1), version: 7, after: 300_000) == 400_000)
    #expect(cache.nextStart(of: key(1), version: 7, after: 400_000) == nil)
    #expect(cache.storedEnd(of: key(1), version: 7, from: 400_000) == 500_000)
    for position in [0, 1, 65_535, 65_536, 262_143, 262_144, 299_999, 400_000] {
      for maximum in [1, 65_535, 65_536, 65_537, 1_000_000] {
        let read = cache.read(key(1), version: 7, from: Int64(position), maximum: maximum)
        #expect(read.map { (1...maximum).contains($0.count) } == true)
        #expect(read.map { Array(bytes[position..<position + $0.count]) == $0 } == true)
      }
    }
    #expect(cache.read(key(1), version: 7, from: 300_000, maximum: 10) == nil)
    #expect(cache.read(key(2), version: 7, from: 0, maximum: 10) == nil)
    #expect(log.lines.isEmpty)
  }

  @Test("Versions are apart, and old ones can be removed")
  func versions() {
    let cache = open()
    for version in [EntryVersion(1), 2] {
      cache.write(content(1000, seed: Int(version)), at: 0, of: key(1), version: version)
    }
    cache.write([9], at: 1000, of: key(1), version: 1)
    cache.setRecord([5], of: key(1))
    #expect(cache.storedEnd(of: key(1), version: 2, from: 0) == 1000)
    #expect(cache.read(key(1), version: 2, from: 0, maximum: 1000) == content(1000, seed: 2))
    cache.remove(key(1), exceptVersion: 2)
    #expect(cache.storedEnd(of: key(1), version: 1, from: 0) == nil)
    #expect(cache.storedEnd(of: key(1), version: 2, from: 0) == 1000)
    #expect(cache.record(of: key(1)) == [5])
    cache.remove(key(1))
    #expect(cache.record(of: key(1)) == nil)
    #expect(cache.storedByteCount == 0)
  }

  @Test("Only the user can read the folder, and it names no URL")
  func permissions() throws {
    let cache = open()
    cache.setRecord([1], of: key(1))
    cache.write([1], at: 0, of: key(1), version: 1)
    #expect(parent.names("cache").contains("CACHEDIR.TAG"))
    #expect(try parent.text("cache/CACHEDIR.TAG").hasPrefix("Signature: 8a477f597d28d172789f06886806bc55\n"))
    for path in try #require(FileManager.default.subpaths(atPath: url.path)) + [""] {
      var status = stat()
      #expect(lstat(url.appending(path: path).path, &status) == 0)
      #expect(status.st_mode & 0o777 == (status.st_mode & S_IFMT == S_IFDIR ? 0o700 : 0o600), "\(path)")
      #expect(!path.contains("example"))
    }
  }

  // MARK: - The bound

  @Test("The limit holds after every write, and the count is what the folder takes")
  func bound() throws {
    let cache = open(2_000_000)
    for number in 0..<60 {
      #expect(cache.setRecord(content(300, seed: number), of: key(number)))
      #expect(
        cache.write(
          content(50_000 + number * 1000, seed: number), at: 0, of: key(number), version: 1))
      #expect(diskUsage() <= 2_000_000)
    }
    #expect(cache.storedByteCount > 1_000_000)
    #expect(try cache.storedByteCount == CacheFolder.contents(of: url).byteCount)
    #expect(cache.record(of: key(0)) == nil)
    #expect(cache.record(of: key(59)) == content(300, seed: 59))
  }

  @Test("What is larger than the limit alone is not stored, and removes nothing", arguments: [0, 1, 100_000])
  func tooLarge(byteLimit: Int64) {
    let cache = open(byteLimit)
    let isStored = cache.write([1], at: 0, of: key(1), version: 1)
    #expect(isStored == (byteLimit == 100_000))
    #expect(!cache.write(content(200_000, seed: 1), at: 0, of: key(2), version: 1))
    #expect((cache.read(key(1), version: 1, from: 0, maximum: 1) == [1]) == isStored)
    #expect(log.lines.isEmpty)
  }

  @Test("Of two limits the smaller one holds, until its cache is released")
  func twoLimits() throws {
    func fill(_ cache: CacheFolder) {
      for number in 0..<30 {
        cache.write(content(100_000, seed: number), at: 0, of: key(number), version: 1)
      }
    }
    let large = open(2_500_000)
    fill(large)
    #expect(diskUsage() > 1_500_000)
    do {
      let small = open(1_000_000)
      #expect(diskUsage() <= 1_000_000)
      #expect(try CacheFolder.contents(of: url).byteLimit == 1_000_000)
      fill(large)
      #expect(diskUsage() <= 1_000_000)
      withExtendedLifetime(small) {}
    }
    fill(large)
    #expect(diskUsage() > 1_500_000)
    #expect(diskUsage() <= 2_500_000)
    #expect(try CacheFolder.contents(of: url).byteLimit == 2_500_000)
  }

  // MARK: - What goes first

  @Test("The least recently used goes first; reading is a use")
  func leastRecentlyUsed() throws {
    let cache = open()
    for number in 1...3 {
      cache.write(content(1000, seed: number), at: 0, of: key(number), version: 1)
      try setUse(key(number), daysAgo: Double(4 - number))
    }
    #expect(cache.read(key(1), version: 1, from: 0, maximum: 1) != nil)
    for expected in [[1, 3], [1], []] {
      trimByOneFile(cache)
      #expect((1...3).filter { cache.storedEnd(of: key($0), version: 1, from: 0) != nil } == expected)
    }
    #expect(cache.storedByteCount == 0)
  }

  @Test(
    "Tails go before heads, the last bytes first, but a head that is unused for long goes before a tail in use"
  )
  func tailsBeforeHeads() throws {
    let cache = open()
    for number in 1...2 {
      for position in [0, 600_000, 700_000] as [Int64] {
        cache.write([1], at: position, of: key(number), version: 1)
      }
      try setUse(key(number), daysAgo: Double(3 - number))
    }
    func stored(_ number: Int) -> [Int64] {
      [0, 600_000, 700_000].filter { cache.storedEnd(of: key(number), version: 1, from: $0) != nil }
    }
    for (first, second) in [
      ([0, 600_000], [0, 600_000, 700_000]), ([0], [0, 600_000, 700_000]), ([0], [0, 600_000]), ([0], [0]),
      ([], [0]),
    ] as [([Int64], [Int64])] {
      trimByOneFile(cache)
      #expect(stored(1) == first)
      #expect(stored(2) == second)
    }
    cache.write([1], at: 0, of: key(1), version: 1)
    try setUse(key(1), daysAgo: 30)
    cache.write([1], at: 600_000, of: key(2), version: 1)
    trimByOneFile(cache)
    #expect(stored(1) == [])
    #expect(stored(2) == [0, 600_000])
  }

  @Test("Times in the future count as now, and pass")
  func future() throws {
    let cache = open(1_000_000)
    for number in 0..<8 { cache.write(content(100_000, seed: number), at: 0, of: key(number), version: 1) }
    for number in 0..<8 { try setUse(key(number), daysAgo: -365) }
    for number in 8..<30 {
      #expect(cache.write(content(100_000, seed: number), at: 0, of: key(number), version: 1))
      #expect(diskUsage() <= 1_000_000)
    }
    #expect((0..<8).allSatisfy { cache.storedEnd(of: key($0), version: 1, from: 0) == nil })
    let newest = try #require(try CacheFolder.contents(of: url).newestUse)
    #expect(newest.timeIntervalSinceNow < 1)
  }

  // MARK: - Damage

  enum Damage: CaseIterable {
    case empty, cutInHead, cut, longer, format, key, name, blockHash, headHash, payload, lastByte, otherFile,
      link
  }

  @Test("A damaged file is removed with a line in the log, and never read", arguments: Damage.allCases)
  func damage(_ damage: Damage) throws {
    let cache = open()
    cache.setRecord(content(300, seed: 1), of: key(1))
    cache.write(content(70_000, seed: 1), at: 0, of: key(1), version: 1)
    cache.write(content(70_000, seed: 2), at: 0, of: key(2), version: 1)
    cache.setRecord(content(300, seed: 2), of: key(2))
    for (path, other) in zip(files(key(1)), files(key(2))) {
      var bytes = Array(try #require(FileManager.default.contents(atPath: path)))
      switch damage {
      case .empty: bytes = []
      case .cutInHead: bytes.removeLast(bytes.count - 200)
      case .cut: bytes.removeLast()
      case .longer: bytes.append(0)
      case .format: bytes[11] ^= 1
      case .key: bytes[20] ^= 1
      case .name: bytes[50] ^= 1
      case .blockHash: bytes[140] ^= 0x80
      case .headHash: bytes[287] ^= 1
      case .payload: bytes[288] ^= 4
      case .lastByte: bytes[bytes.count - 1] ^= 1
      case .otherFile: bytes = Array(try #require(FileManager.default.contents(atPath: other)))
      case .link: break
      }
      try FileManager.default.removeItem(atPath: path)
      if damage == .link {
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: other)
      } else {
        #expect(FileManager.default.createFile(atPath: path, contents: Data(bytes)))
      }
    }
    #expect(cache.record(of: key(1)) == nil)
    // The last byte is in the second block, which a read of the first does not check.
    let isFirstRead = damage == .lastByte
    #expect((cache.read(key(1), version: 1, from: 0, maximum: 65_536) == nil) != isFirstRead)
    #expect(cache.read(key(1), version: 1, from: 65_536, maximum: 65_536) == nil)
    if damage != .link {
      #expect(files(key(1)).isEmpty)
      #expect(log.lines.count == 2)
    }
    #expect(cache.record(of: key(2)) == content(300, seed: 2))
    #expect(
      cache.read(key(2), version: 1, from: 0, maximum: 65_536)
        == Array(content(70_000, seed: 2)[..<65_536]))
  }

  @Test("A piece under another name is not read")
  func renamed() throws {
    let cache = open()
    cache.write(content(1000, seed: 1), at: 0, of: key(1), version: 1)
    let path = try #require(files(key(1)).first)
    let moved = EntryFile.piece(1, 1000..<2000).name
    try FileManager.default.moveItem(
      atPath: path, toPath: parent.path("cache/\(key(1).group)/\(key(1).name)/\(moved)"))
    #expect(cache.storedEnd(of: key(1), version: 1, from: 1000) == 2000)
    #expect(cache.read(key(1), version: 1, from: 1000, maximum: 10) == nil)
    #expect(cache.storedEnd(of: key(1), version: 1, from: 1000) == nil)
    #expect(log.lines.count == 1)
  }

  @Test("The count of bytes is made anew if it is lost or damaged", arguments: [nil, "", "1 5 5 5 - - 0 x"])
  func usage(_ text: String?) throws {
    do {
      let cache = open()
      for number in 0..<5 { cache.write(content(10_000, seed: 1), at: 0, of: key(number), version: 1) }
    }
    try FileManager.default.removeItem(atPath: parent.path("cache/usage"))
    if let text { try parent.write(text, to: "cache/usage") }
    let cache = open()
    #expect(cache.storedByteCount > 50_000)
    #expect(try cache.storedByteCount == CacheFolder.contents(of: url).byteCount)
  }

  // MARK: - Folders

  @Test("A folder with other content is neither used nor changed")
  func foreignFolder() throws {
    try parent.write("mine", to: "cache/.hidden")
    let cache = open()
    #expect(!cache.write([1], at: 0, of: key(1), version: 1))
    #expect(!cache.setRecord([1], of: key(1)))
    #expect(cache.record(of: key(1)) == nil)
    cache.remove(key(1))
    cache.trim(toByteCount: 0)
    #expect(parent.names("cache") == [".hidden"])
    #expect(log.lines.count == 1)
    #expect(throws: ReelError.self) { try CacheFolder.contents(of: url) }
    for work in [{ try MediaCache.removeAll(in: url) }, { _ = try CacheFolder.contents(of: url) }] {
      let error = #expect(throws: ReelError.self, performing: work)
      #expect(error?.kind == .usage)
    }
    let missing = parent.url.appending(path: "missing")
    let error = #expect(throws: ReelError.self) { try MediaCache.removeAll(in: missing) }
    #expect(error?.kind == .noSuchFile)
    #expect(parent.names() == ["cache"])
  }

  @Test("Links in the place of folders are not followed")
  func links() throws {
    let cache = open()
    try FileManager.default.createDirectory(atPath: parent.path("other"), withIntermediateDirectories: false)
    try FileManager.default.createSymbolicLink(
      atPath: parent.path("cache/\(key(1).group)"), withDestinationPath: parent.path("other"))
    #expect(!cache.write([1], at: 0, of: key(1), version: 1))
    cache.remove(key(1))
    #expect(parent.names("other").isEmpty)
  }

  @Test(
    "A folder that is removed or replaced is used no more, with one line in the log",
    arguments: [true, false])
  func removedFolder(isReplaced: Bool) throws {
    let cache = open()
    #expect(cache.write([1], at: 0, of: key(1), version: 1))
    try FileManager.default.moveItem(atPath: url.path, toPath: parent.path("moved"))
    if isReplaced { try parent.write("mine", to: "cache/file") }
    for _ in 0..<3 { #expect(!cache.write([1], at: 1, of: key(1), version: 1)) }
    #expect(log.lines.count == 1)
    #expect(parent.names("cache") == (isReplaced ? ["file"] : []))
  }

  @Test("A folder that can't be written into stores nothing", .enabled(if: geteuid() != 0))
  func readOnlyFolder() throws {
    let cache = open()
    #expect(cache.write([1], at: 0, of: key(1), version: 1))
    try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: url.path)
    defer { try? FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: url.path) }
    for number in 2..<5 { #expect(!cache.write([1], at: 0, of: key(number), version: 1)) }
    #expect(cache.read(key(1), version: 1, from: 0, maximum: 1) == [1])
    #expect(log.lines.count == 1)
  }

  @Test("The command removes what is unused, and everything; an open cache goes on")
  func removal() throws {
    let cache = open()
    for number in 1...3 { cache.write(content(10_000, seed: 1), at: 0, of: key(number), version: 1) }
    try setUse(key(2), daysAgo: 10)
    let stored = cache.storedByteCount
    let removed = try MediaCache.remove(in: url, unusedFor: .seconds(7 * 86_400))
    #expect(removed.entryCount == 1)
    #expect(removed.byteCount == stored - cache.storedByteCount)
    #expect(cache.storedEnd(of: key(2), version: 1, from: 0) == nil)
    let contents = try CacheFolder.contents(of: url)
    #expect(contents.entryCount == 2)
    #expect(contents.pieceCount == 2)
    #expect(contents.byteLimit == 10_000_000)
    try MediaCache.removeAll(in: url)
    #expect(cache.storedByteCount == 0)
    #expect(try CacheFolder.contents(of: url).oldestUse == nil)
    #expect(cache.write([1], at: 0, of: key(1), version: 1))
  }

  // MARK: - Processes

  @Test("A file that can't be written whole leaves nothing behind")
  func failedWrite() async {
    await #expect(processExitsWith: .success) {
      let test = try CacheFolderTests()
      let cache = test.open()
      signal(SIGXFSZ, SIG_IGN)
      setFileSizeLimit(100_000)
      let before = cache.storedByteCount
      for _ in 0..<3 {
        try #require(!cache.write(content(200_000, seed: 1), at: 0, of: test.key(1), version: 1))
      }
      try #require(cache.storedByteCount == before)
      try #require(test.log.lines.count == 1)
      try #require(!test.parent.names("cache").contains("new"))
      try #require(cache.write([1], at: 0, of: test.key(1), version: 1))
    }
  }

  @Test("Processes that are killed while they write leave right bytes, and a right count")
  func killedProcesses() async throws {
    for round in 1...4 {
      await withTaskGroup { group in
        for writer in 0..<3 {
          group.addTask { [path = url.path] in
            await #expect(processExitsWith: .signal(SIGKILL)) {
              [path = path as String, count = round * 7 + writer as Int] in
              CacheFolderTests.writeUntilKilled(at: path, writeCount: count)
            }
          }
        }
      }
      let cache = open(1_000_000)
      #expect(diskUsage() <= 1_000_000)
      #expect(try cache.storedByteCount == CacheFolder.contents(of: url).byteCount)
      for number in 0..<20 {
        let bytes = cache.read(key(number), version: 1, from: 0, maximum: 65_536)
        #expect(bytes == nil || bytes == [UInt8](repeating: UInt8(number), count: 65_536))
      }
    }
    #expect(log.lines.isEmpty)
  }

  /// Writes until another thread, which has seen so many writes, ends the process.
  fileprivate static func writeUntilKilled(at path: String, writeCount: Int) {
    let cache = CacheFolder(at: URL(filePath: path), byteLimit: 1_000_000, logger: silentLogger)
    let count = Locked(0)
    Thread.detachNewThread {
      while count.withLock({ $0 < writeCount }) {}
      kill(getpid(), SIGKILL)
    }
    while true {
      for number in 0..<20 {
        let key = EntryKey(hashing: ["https://example.com/\(number)"])
        cache.write([UInt8](repeating: UInt8(number), count: 65_536), at: 0, of: key, version: 1)
        count.withLock { $0 += 1 }
      }
    }
  }
}

private func setFileSizeLimit(_ byteCount: Int) {
  var limit = rlimit(rlim_cur: rlim_t(byteCount), rlim_max: rlim_t(byteCount))
  #if canImport(Darwin)
    setrlimit(RLIMIT_FSIZE, &limit)
  #else
    setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
  #endif
}

/// Keeps what is logged.
private final class LogLines: Sendable {
  private let kept = Locked([String]())

  var lines: [String] { kept.withLock { $0 } }

  var logger: Logger { Logger(label: "test") { _ in Handler(lines: self) } }

  private struct Handler: LogHandler {
    let lines: LogLines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { lines.kept.withLock { $0.append("\(event.message)") } }
  }
}
