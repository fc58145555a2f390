internal import DequeModule
internal import ReelCore
internal import ReelFFmpeg

/// The packets of one stream from the key frame of what is on show to the end of what was loaded, and where its decoder
/// stands among them.
///
/// A pure value.
struct PacketQueue: Sendable {
  private var packets: Deque<MediaPacket> = []
  /// How many of them the decoder has had.
  private var cursor = 0
  /// Where the last one in presentation order ends, as its span counts.
  private var latest: (span: StreamSpan, end: MediaTime)?
  private(set) var byteCount = 0
  /// Bytes that the decoder has not had.
  private(set) var pendingByteCount = 0
  /// No packet will come after the last.
  var hasEnded = false
  /// That is for a failure: there may be more behind it.
  var isBroken = false

  var isEmpty: Bool { packets.isEmpty }
  var count: Int { packets.count }
  /// True where the decoder has had all.
  var isConsumed: Bool { cursor == packets.count }
  /// The end of the last one in presentation order.
  var end: MediaTime? { latest.map { $0.span.time($0.end) } }
  /// The time of the first packet that is kept.
  var start: MediaTime? { packets.first?.time }

  mutating func append(_ packet: MediaPacket) {
    packets.append(packet)
    byteCount += packet.byteCount
    pendingByteCount += packet.byteCount
    noteEnd(of: packet)
  }

  /// The packet that the decoder gets next, without taking it.
  var next: MediaPacket? { cursor < packets.count ? packets[cursor] : nil }

  mutating func takeNext() -> MediaPacket? {
    guard cursor < packets.count else { return nil }
    defer { cursor += 1 }
    pendingByteCount -= packets[cursor].byteCount
    return packets[cursor]
  }

  /// Moves the decoder to the last key frame at or before `time`. False, and nothing moves, where there is none, or
  /// where `time` lies behind what was loaded.
  mutating func seek(to time: MediaTime) -> Bool {
    guard let end, time < end || hasEnded && !isBroken else { return false }
    guard let index = packets.lastIndex(where: { $0.isKey && $0.time <= time }) else { return false }
    moveCursor(to: index)
    return true
  }

  /// Moves the decoder to the first packet at or after `time`; to the end where there is none.
  mutating func skip(to time: MediaTime) {
    moveCursor(to: packets.firstIndex { $0.end > time } ?? packets.count)
  }

  /// Moves the decoder back to the last key frame at or before `time` that it has already decoded, or that it was
  /// moved back to before. Returns false without moving if no such key frame is left.
  mutating func rewindToKey(before time: MediaTime) -> Bool {
    let had = packets[..<min(cursor + 1, packets.count)]
    guard let index = had.lastIndex(where: { $0.isKey && $0.time <= time }) else { return false }
    moveCursor(to: index)
    return true
  }

  /// Drops what is not needed to show the frame at `time` again: all before its key frame. Of more than
  /// `byteLimit` bytes that the decoder has had, the oldest go too.
  mutating func trim(before time: MediaTime, byteLimit: Int) {
    var keep = packets[..<cursor].lastIndex { $0.isKey && $0.time <= time } ?? 0
    var kept = byteCount - pendingByteCount - packets[..<keep].reduce(0) { $0 + $1.byteCount }
    while kept > byteLimit, keep < cursor {
      kept -= packets[keep].byteCount
      keep += 1
    }
    drop(keep)
  }

  /// Drops audio that has been heard: all that ends before `time`.
  mutating func drop(endingBefore time: MediaTime) {
    drop(packets[..<cursor].firstIndex { $0.end >= time } ?? cursor)
  }

  /// Drops what was loaded of later times through the item than `iteration`.
  mutating func drop(after iteration: Int) {
    while let last = packets.last, last.span.loop.iteration > iteration {
      packets.removeLast()
      byteCount -= last.byteCount
      if cursor > packets.count { cursor = packets.count } else { pendingByteCount -= last.byteCount }
    }
    guard !packets.isEmpty else { return }
    latest = nil
    for packet in packets { noteEnd(of: packet) }
  }

  /// Bytes of the packets that are presented after `time`; of all where it is nil.
  func byteCount(after time: MediaTime?) -> Int {
    guard let time else { return byteCount }
    return packets.reduce(0) { $1.time > time ? $0 + $1.byteCount : $0 }
  }

  // MARK: - Private

  private mutating func noteEnd(of packet: MediaPacket) {
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
    packets.removeFirst(count)
    cursor -= count
  }
}
