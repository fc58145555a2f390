import ReelCore
import Testing

@testable import ReelPlayback

@Suite("Packet queues")
struct PacketQueueTests {
  private let maker: PacketMaker

  init() throws { maker = try PacketMaker() }

  /// A packet of 100 ms, of a GOP of `length` frames at most.
  private func packet(_ index: Int, isKey: Bool, of span: StreamSpan, byteCount: Int = 10) throws
    -> MediaPacket
  {
    try maker.make(
      MediaTime(value: Int64(index), timescale: 10), lasting: MediaTime(value: 1, timescale: 10), of: span,
      isKey: isKey, byteCount: byteCount)
  }

  /// Ten packets, the keys at 0, 4 and 8.
  private func queue(taken: Int = 0) throws -> PacketQueue {
    var queue = PacketQueue()
    let span = maker.makeSpan()
    for index in 0..<10 { queue.append(try packet(index, isKey: index % 4 == 0, of: span)) }
    for _ in 0..<taken { _ = queue.takeNext() }
    return queue
  }

  private func expectSeek(
    _ expected: Bool, _ queue: inout PacketQueue, to time: MediaTime,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let hasMoved = queue.seek(to: time)
    #expect(hasMoved == expected, sourceLocation: sourceLocation)
  }

  private func expectRewind(
    _ expected: Bool, _ queue: inout PacketQueue, before time: MediaTime,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let hasMoved = queue.rewindToKey(before: time)
    #expect(hasMoved == expected, sourceLocation: sourceLocation)
  }

  private func time(_ tenths: Int) -> MediaTime { MediaTime(value: Int64(tenths), timescale: 10) }

  @Test("Packets are taken in the order in which they came")
  func order() throws {
    var queue = try queue()
    #expect(queue.start == .zero)
    #expect(queue.end == time(10))
    for index in 0..<10 {
      #expect(!queue.isConsumed)
      #expect(queue.next?.time == time(index))
      #expect(queue.pendingByteCount == 10 * (10 - index))
      let taken = queue.takeNext()
      #expect(taken?.time == time(index))
    }
    #expect(queue.isConsumed)
    #expect(queue.next == nil)
    let none = queue.takeNext()
    #expect(none == nil)
    #expect((queue.byteCount, queue.pendingByteCount, queue.count) == (100, 0, 10))
  }

  @Test("A seek goes to the last key frame at or before the time", arguments: [0, 3, 4, 7, 8, 9])
  func seek(tenths: Int) throws {
    for taken in [0, 5, 10] {
      var queue = try queue(taken: taken)
      expectSeek(true, &queue, to: time(tenths))
      #expect(queue.next?.time == time(tenths / 4 * 4))
      #expect(queue.pendingByteCount == 10 * (10 - tenths / 4 * 4))
    }
  }

  @Test("A seek outside moves nothing")
  func seekOutside() throws {
    var queue = try queue(taken: 6)
    expectSeek(false, &queue, to: time(10))
    expectSeek(false, &queue, to: time(-1))
    #expect(queue.next?.time == time(6))
    // Behind the end of what has ended there is its last frame.
    queue.hasEnded = true
    expectSeek(true, &queue, to: time(10))
    #expect(queue.next?.time == time(8))
    var empty = PacketQueue()
    expectSeek(false, &empty, to: .zero)
    empty.hasEnded = true
    expectSeek(false, &empty, to: .zero)
  }

  @Test("Decoding is begun again at the key frame of a frame, not at a later one that was taken already")
  func rewind() throws {
    var queue = try queue(taken: 6)
    expectRewind(true, &queue, before: time(3))
    #expect(queue.next?.time == time(0))
    #expect(queue.pendingByteCount == 100)
    queue = try self.queue(taken: 6)
    expectRewind(true, &queue, before: time(5))
    #expect(queue.next?.time == time(4))
    // Again, after another frame was taken in the meantime.
    queue = try self.queue(taken: 6)
    expectRewind(true, &queue, before: time(3))
    expectRewind(true, &queue, before: time(3))
    #expect(queue.next?.time == time(0))
    #expect(queue.pendingByteCount == 100)
    // Not forward.
    queue = try self.queue(taken: 6)
    expectRewind(true, &queue, before: time(9))
    #expect(queue.next?.time == time(4))
    _ = queue.takeNext()
    queue.trim(before: time(4))
    expectRewind(false, &queue, before: time(3))
    #expect(queue.next?.time == time(5))
  }

  @Test("Trimming keeps the key frame of what is on show, and all that was not taken")
  func trim() throws {
    var queue = try queue(taken: 7)
    queue.trim(before: time(3))
    #expect((queue.count, queue.byteCount, queue.pendingByteCount) == (10, 100, 30))
    queue.trim(before: time(6))
    #expect((queue.count, queue.byteCount, queue.pendingByteCount) == (6, 60, 30))
    #expect(queue.start == time(4))
    // A key frame that was not taken yet is no reason to drop anything.
    queue.trim(before: time(9))
    #expect((queue.count, queue.byteCount, queue.pendingByteCount) == (6, 60, 30))
    #expect(queue.next?.time == time(7))
    // Over the limit, only what was taken goes.
    queue.dropTaken(beyond: 15)
    #expect((queue.count, queue.byteCount, queue.pendingByteCount) == (4, 40, 30))
    queue.dropTaken(beyond: 0)
    #expect((queue.count, queue.byteCount, queue.pendingByteCount) == (3, 30, 30))
    #expect(queue.next?.time == time(7))
    #expect(queue.end == time(10))
  }

  @Test("Sound that has been heard is dropped")
  func dropHeard() throws {
    var queue = try queue(taken: 5)
    queue.drop(endingBefore: time(3))
    #expect(queue.start == time(2))
    queue.drop(endingBefore: time(9))
    #expect(queue.start == time(5))
    #expect((queue.byteCount, queue.pendingByteCount) == (50, 50))
  }

  @Test("Skipping goes to the packet that lasts beyond the time")
  func skip() throws {
    var queue = try queue()
    queue.skip(to: MediaTime(value: 45, timescale: 100))
    #expect(queue.next?.time == time(4))
    queue.skip(to: time(4))
    #expect(queue.next?.time == time(4))
    queue.skip(to: time(20))
    #expect(queue.isConsumed)
    #expect(queue.pendingByteCount == 0)
  }

  @Test("Later times through the item are dropped from the end", arguments: [0, 3, 5, 8, 10])
  func dropPasses(taken: Int) throws {
    var queue = PacketQueue()
    let spans = [maker.makeSpan(iteration: 0), maker.makeSpan(iteration: 1, shift: time(5))]
    for index in 0..<10 {
      queue.append(try packet(index, isKey: index % 5 == 0, of: spans[index / 5]))
    }
    for _ in 0..<taken { _ = queue.takeNext() }
    queue.drop(after: 1)
    #expect(queue.count == 10)
    queue.drop(after: 0)
    #expect((queue.count, queue.byteCount) == (5, 50))
    #expect(queue.pendingByteCount == 10 * max(0, 5 - taken))
    #expect(queue.end == time(5))
    #expect(queue.isConsumed == (taken >= 5))
  }

  @Test("Times follow the offset, where the first frame puts it right")
  func settledDomain() throws {
    let offset = TimestampOffset(offset: nil)
    offset.begin(time(2), at: .zero)
    let span = StreamSpan(
      stream: maker.video, offset: offset, rung: nil, loop: LoopIteration(), followsGap: false)
    var queue = PacketQueue()
    for index in 0..<4 { queue.append(try packet(index, isKey: index % 2 == 0, of: span)) }
    #expect(queue.start == time(-2))
    #expect(queue.end == time(2))
    offset.settle(firstFrame: time(1))
    #expect(queue.start == time(-1))
    #expect(queue.end == time(3))
    expectSeek(true, &queue, to: time(2))
    #expect(queue.next?.time == time(1))
  }
}
