internal import DequeModule
internal import ReelCore
internal import ReelFFmpeg

/// The packets of one stream, from the key frame of the frame on show to the end of the loaded media, and the
/// position of its decoder.
///
/// A pure value. The packets that it drops are kept until their owner takes them with `takeReleased()`: freeing
/// them may take long, so it does that outside its lock.
struct PacketQueue: Sendable {
  private var packets: Deque<MediaPacket> = []
  /// The number of packets that the decoder has taken.
  private var cursor = 0
  /// The end of the last packet in presentation order, in its span's time.
  private var latest: (span: StreamSpan, end: MediaTime)?
  private(set) var byteCount = 0
  /// The number of bytes that the decoder has not taken.
  private(set) var pendingByteCount = 0
  /// The packets that were dropped and not taken yet.
  private var released: [MediaPacket] = []
  /// True if no packet follows the last one.
  var hasEnded = false
  /// True if the end is due to a failure: more media may follow.
  var isBroken = false

  var isEmpty: Bool { packets.isEmpty }
  var count: Int { packets.count }
  /// True if the decoder has taken all packets.
  var isConsumed: Bool { cursor == packets.count }
  /// The end of the last packet in presentation order.
  var end: MediaTime? { latest.map { $0.span.time($0.end) } }
  /// The time of the first packet in the queue.
  var start: MediaTime? { packets.first?.time }

  mutating func append(_ packet: MediaPacket) {
    packets.append(packet)
    byteCount += packet.byteCount
    pendingByteCount += packet.byteCount
    recordEnd(of: packet)
  }

  /// The next packet for the decoder.
  var next: MediaPacket? { cursor < packets.count ? packets[cursor] : nil }

  mutating func takeNext() -> MediaPacket? {
    guard cursor < packets.count else { return nil }
    defer { cursor += 1 }
    pendingByteCount -= packets[cursor].byteCount
    return packets[cursor]
  }

  /// Moves the decoder to the last key frame at or before `time`. Returns false without moving if there is
  /// none, or if `time` is after the loaded media.
  mutating func seek(to time: MediaTime) -> Bool {
    guard let end, time < end || hasEnded && !isBroken else { return false }
    guard let index = packets.lastIndex(where: { $0.isKey && $0.time <= time }) else { return false }
    moveCursor(to: index)
    return true
  }

  /// Moves the decoder to the first packet at or after `time`, or to the end.
  mutating func skip(to time: MediaTime) {
    moveCursor(to: packets.firstIndex { $0.end > time } ?? packets.count)
  }

  /// Moves the decoder back to the last key frame at or before `time` that it has already decoded, or from
  /// which it was moved back before. Returns false without moving if no such key frame is left.
  mutating func rewindToKey(before time: MediaTime) -> Bool {
    let had = packets[..<min(cursor + 1, packets.count)]
    guard let index = had.lastIndex(where: { $0.isKey && $0.time <= time }) else { return false }
    moveCursor(to: index)
    return true
  }

  /// Moves the decoder back to the first packet that is kept.
  mutating func rewindToStart() { moveCursor(to: 0) }

  /// Moves the decoder back to the last key frame that it has taken. Does nothing if there is none.
  mutating func rewindToLastKey() {
    if let index = packets[..<cursor].lastIndex(where: \.isKey) { moveCursor(to: index) }
  }

  /// Drops packets that are not needed to show the frame at `time` again: those before its key frame. Also
  /// drops the oldest packets that the decoder has taken beyond `byteLimit` bytes.
  mutating func trim(before time: MediaTime, byteLimit: Int) {
    var keep = packets[..<cursor].lastIndex { $0.isKey && $0.time <= time } ?? 0
    var kept = byteCount - pendingByteCount - packets[..<keep].reduce(0) { $0 + $1.byteCount }
    while kept > byteLimit, keep < cursor {
      kept -= packets[keep].byteCount
      keep += 1
    }
    drop(keep)
  }

  /// Drops audio that has been played: packets that end before `time`.
  mutating func drop(endingBefore time: MediaTime) {
    drop(packets[..<cursor].firstIndex { $0.end >= time } ?? cursor)
  }

  /// Drops packets of iterations after `iteration`.
  mutating func drop(after iteration: Int) {
    while let last = packets.last, last.span.loop.iteration > iteration {
      released.append(packets.removeLast())
      byteCount -= last.byteCount
      if cursor > packets.count { cursor = packets.count } else { pendingByteCount -= last.byteCount }
    }
    guard !packets.isEmpty else { return }
    latest = nil
    for packet in packets { recordEnd(of: packet) }
  }

  /// Removes all packets.
  mutating func removeAll() {
    var new = PacketQueue()
    new.released = released
    new.released.append(contentsOf: packets)
    self = new
  }

  /// Returns the packets that were dropped since the last call.
  mutating func takeReleased() -> [MediaPacket] {
    defer { released = [] }
    return released
  }

  /// Returns the number of bytes of the packets presented after `time`; of all packets if it is nil.
  func byteCount(after time: MediaTime?) -> Int {
    guard let time else { return byteCount }
    return packets.reduce(0) { $1.time > time ? $0 + $1.byteCount : $0 }
  }

  // MARK: - Private

  private mutating func recordEnd(of packet: MediaPacket) {
    if let end, end >= packet.end { return }
    latest = (packet.span, packet.mediaTime + packet.duration)
  }

  private mutating func moveCursor(to index: Int) {
    if index < cursor {
      pendingByteCount += packets[index..<cursor].reduce(0) { $0 + $1.byteCount }
    } else {
      pendingByteCount -= packets[cursor..<index].reduce(0) { $0 + $1.byteCount }
    }
    cursor = index
  }

  private mutating func drop(_ count: Int) {
    guard count > 0 else { return }
    byteCount -= packets[..<count].reduce(0) { $0 + $1.byteCount }
    released.append(contentsOf: packets[..<count])
    packets.removeFirst(count)
    cursor -= count
  }
}
