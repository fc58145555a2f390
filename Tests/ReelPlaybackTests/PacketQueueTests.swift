import ReelCore
import Testing

@testable import ReelPlayback
@testable import ReelReading

/// What `ForwardBufferTests` does not reach with its model.
@Suite("Packet queues")
struct PacketQueueTests {
  private let maker: PacketMaker

  init() throws { maker = try PacketMaker() }

  /// A packet of 100 ms.
  private func packet(_ index: Int, isKey: Bool, of span: StreamSpan) throws -> MediaPacket {
    try maker.make(time(index), lasting: time(1), of: span, isKey: isKey, byteCount: 10)
  }

  /// Ten packets, the keys at 0, 4 and 8.
  private func queue(taken: Int = 0) throws -> PacketQueue {
    var queue = PacketQueue()
    let span = maker.makeSpan()
    for index in 0..<10 { queue.append(try packet(index, isKey: index % 4 == 0, of: span)) }
    for _ in 0..<taken { _ = queue.takeNext() }
    return queue
  }

  private func time(_ tenths: Int) -> MediaTime { MediaTime(value: Int64(tenths), timescale: 10) }

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
    let hasMoved = queue.seek(to: time(2))
    #expect(hasMoved)
    #expect(queue.next?.time == time(1))
  }
}
