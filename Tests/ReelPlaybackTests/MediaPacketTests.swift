import ReelCore
import ReelFFmpeg
import Testing

@testable import ReelReading

@Suite("Places of packets on the timeline")
struct MediaPacketTests {
  private func time(_ tenths: Int) -> MediaTime { MediaTime(value: Int64(tenths), timescale: 10) }

  @Test("An offset that the manifest states stays")
  func stated() {
    let offset = TimestampOffset(offset: time(-3))
    offset.begin(time(10), at: .zero)
    offset.settle(firstFrame: time(5))
    #expect(offset.value == time(-3))
    #expect(offset.knownValue == time(-3))
  }

  @Test("The first packet decides, and the first frame puts it right once")
  func begun() {
    let offset = TimestampOffset(offset: nil)
    #expect(offset.knownValue == nil)
    #expect(offset.value == .zero)
    offset.settle(firstFrame: time(1))
    #expect(offset.knownValue == nil)
    offset.begin(time(14), at: time(40))
    #expect(offset.knownValue == time(26))
    offset.begin(time(99), at: .zero)
    #expect(offset.value == time(26))
    offset.settle(firstFrame: time(12))
    #expect(offset.value == time(28))
    offset.settle(firstFrame: time(10))
    #expect(offset.value == time(28))
  }

  @Test("A span adds its offset's offset and its loop's shift")
  func run() throws {
    let maker = try PacketMaker()
    let offset = TimestampOffset(offset: time(-20))
    let span = StreamSpan(
      stream: maker.video, offset: offset, rung: nil, loop: LoopIteration(iteration: 2, shift: time(100)),
      followsGap: true)
    #expect(span.shift == time(100))
    #expect(span.time(time(25)) == time(105))
    #expect(span.time(ticks: Int64(maker.video.timeBase.denominator)) == time(90))
    let packet = try maker.make(time(105), lasting: time(1), of: maker.makeSpan(shift: time(100)))
    #expect(packet.time == time(105))
    #expect(packet.end == time(106))
  }
}
