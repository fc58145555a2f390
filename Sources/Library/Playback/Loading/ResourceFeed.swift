internal import ReelCore

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
  /// Set before the first byte if the server sends the whole file instead of the range.
  let ignoresRange: Locked<Bool>
  private var recent: RecentBytes
  /// The same as `end` if that was set after the transfer began.
  private let limit: Locked<Int64?>

  /// - Parameters:
  ///   - capacity: The number of unread bytes at which the transfer waits.
  ///   - recentByteCount: The number of bytes that are kept after they were read.
  ///   - body: Writes into the pipe, and stops at the limit.
  init(
    at position: Int64, end: Int64? = nil, ignoresRange: Locked<Bool> = Locked(false), in scope: LoadScope,
    capacity: Int, recentByteCount: Int,
    _ body: @escaping @Sendable (BytePipe, _ limit: Locked<Int64?>) async throws -> Void
  ) {
    let limit = Locked<Int64?>(nil)
    transfer = PipeTask(in: scope, capacity: capacity) { try await body($0, limit) }
    recent = RecentBytes(capacity: recentByteCount)
    self.ignoresRange = ignoresRange
    self.position = position
    self.end = end
    self.limit = limit
  }

  var pipe: BytePipe { transfer.pipe }

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
    limit.withLock { $0 = end }
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
    guard let end = limit.withLock({ $0 }), end - position <= ReadingOrder.remainderByteCount else { return }
    pipe.expand(to: Int(ReadingOrder.remainderByteCount))
  }
}
