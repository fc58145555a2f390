internal import DequeModule
internal import ReelCore
internal import ReelSources

/// One transfer of a file into a pipe, and the bytes before its position that may be read again.
///
/// Confined to the thread of its reader; the transfer runs in a task of its own, which ends with the scope or
/// with this object.
final class ResourceFeed {
  private let transfer: PipeTask
  /// The position of the byte that the pipe returns next.
  private(set) var position: Int64
  /// The end of the transfer, if that is before the end of the file.
  private(set) var end: Int64?
  private var recent: RecentBytes
  private let messages: Locked<Messages>

  /// What the reader and the transfer tell each other, besides the bytes.
  struct Messages: Sendable {
    /// The same as `end` if that was set after the transfer began.
    var limit: Int64?
    /// Set before the first byte if the server sends the whole file instead of the range.
    var ignoresRange = false
  }

  /// - Parameters:
  ///   - capacity: The number of unread bytes at which the transfer waits.
  ///   - recentByteCount: The number of bytes that are kept after they were read.
  ///   - body: Writes into the pipe, and stops at the limit.
  init(
    at position: Int64, end: Int64? = nil, in scope: LoadScope, capacity: Int, recentByteCount: Int,
    _ body: @escaping @Sendable (BytePipe, Locked<Messages>) async throws -> Void
  ) {
    let messages = Locked(Messages())
    transfer = PipeTask(in: scope, capacity: capacity) { try await body($0, messages) }
    recent = RecentBytes(capacity: recentByteCount)
    self.position = position
    self.end = end
    self.messages = messages
  }

  var pipe: BytePipe { transfer.pipe }
  /// True if the bytes are those of the whole file, from its first one on. Known once some have arrived.
  var ignoresRange: Bool { messages.withLock { $0.ignoresRange } }

  var recentByteCount: Int {
    get { recent.capacity }
    set { recent.capacity = newValue }
  }

  /// Returns true if bytes from `place` on can be read, by going back or by reading through at most `count`
  /// bytes.
  func reaches(_ place: Int64, leavingOut count: Int64) -> Bool {
    (Int64(-recent.count)...count).contains(place - position) && end.map { place < $0 } ?? true
  }

  /// Returns true if the transfer was read to its end, and that is at `place` or a little before.
  func hasEnded(shortlyBefore place: Int64) -> Bool {
    end == position && (0...ReadingOrder.readThroughByteCount).contains(place - position)
  }

  /// Ends the transfer at `end`, if it would continue to the end of the file.
  func cut(at end: Int64) {
    guard self.end == nil else { return }
    self.end = end
    messages.withLock { $0.limit = end }
    hurryAtEnd()
  }

  /// Copies bytes from `place` on that were read before.
  func readAgain(at place: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
    recent.read(Int(position - place), beforeEndInto: buffer)
  }

  /// Records bytes that were taken from the pipe.
  func advance(over bytes: UnsafeMutableRawBufferPointer.SubSequence) {
    position += Int64(bytes.count)
    recent.append(bytes)
    hurryAtEnd()
  }

  /// Keeps the bytes of a transfer that ended where this one begins.
  func follow(_ other: ResourceFeed) {
    if other.position == position { recent = other.recent }
  }

  /// Stops a transfer that was cut from waiting for its reader near its end: otherwise, its connection would
  /// meanwhile receive bytes after the end.
  private func hurryAtEnd() {
    guard let end = messages.withLock({ $0.limit }), end - position <= ReadingOrder.remainderByteCount else {
      return
    }
    pipe.expand(to: Int(ReadingOrder.remainderByteCount))
  }
}

/// The bytes read most recently from a transfer, for a reader that goes back a little.
struct RecentBytes {
  /// The minimum number of bytes that are kept, once that many have arrived.
  var capacity: Int { didSet { trim() } }
  private(set) var count = 0
  private var chunks: Deque<[UInt8]> = []

  init(capacity: Int) { self.capacity = capacity }

  mutating func append(_ bytes: UnsafeMutableRawBufferPointer.SubSequence) {
    guard capacity > 0, !bytes.isEmpty else { return }
    chunks.append(Array(bytes))
    count += bytes.count
    trim()
  }

  /// Copies bytes that begin `distance` bytes before the end, and returns their number. Later calls may
  /// return them again.
  func read(_ distance: Int, beforeEndInto buffer: UnsafeMutableRawBufferPointer) -> Int {
    var start = count - distance
    for chunk in chunks {
      guard start >= chunk.count else {
        let copied = min(buffer.count, chunk.count - start)
        chunk.withUnsafeBytes {
          buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<(start + copied)]))
        }
        return copied
      }
      start -= chunk.count
    }
    return 0
  }

  private mutating func trim() {
    while let first = chunks.first, count - first.count >= capacity {
      count -= first.count
      chunks.removeFirst()
    }
  }
}

/// Limits the number of concurrent transfers. Waiting ones begin in order, each as soon as another one ends.
actor TransferPermits {
  private var freeCount: Int
  private var waiting: [CheckedContinuation<Void, Never>] = []

  init(_ count: Int) { freeCount = count }

  /// Waits for a permit, and returns it when `body` ends. A cancelled task also waits for the others to end.
  func run(_ body: @Sendable () async throws -> Void) async throws {
    if freeCount > 0 { freeCount -= 1 } else { await withCheckedContinuation { waiting.append($0) } }
    defer { if waiting.isEmpty { freeCount += 1 } else { waiting.removeFirst().resume() } }
    try Task.checkCancellation()
    try await body()
  }
}
