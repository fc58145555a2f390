import ReelCore
import ReelFFmpeg
import Testing

@testable import ReelPlayback

@Suite("Places of packets on the timeline")
struct MediaPacketTests {
  private func time(_ tenths: Int) -> MediaTime { MediaTime(value: Int64(tenths), timescale: 10) }

  @Test("An offset that the manifest states stays")
  func stated() {
    let domain = TimestampDomain(offset: time(-3))
    domain.begin(time(10), at: .zero)
    domain.settle(firstPicture: time(5))
    #expect(domain.offset == time(-3))
    #expect(domain.knownOffset == time(-3))
  }

  @Test("The first packet decides, and the first picture puts it right once")
  func begun() {
    let domain = TimestampDomain(offset: nil)
    #expect(domain.knownOffset == nil)
    #expect(domain.offset == .zero)
    domain.settle(firstPicture: time(1))
    #expect(domain.knownOffset == nil)
    domain.begin(time(14), at: time(40))
    #expect(domain.knownOffset == time(26))
    domain.begin(time(99), at: .zero)
    #expect(domain.offset == time(26))
    domain.settle(firstPicture: time(12))
    #expect(domain.offset == time(28))
    domain.settle(firstPicture: time(10))
    #expect(domain.offset == time(28))
  }

  @Test("A run adds its domain's offset and its pass's shift")
  func run() throws {
    let maker = try PacketMaker()
    let domain = TimestampDomain(offset: time(-20))
    let run = MediaRun(
      stream: maker.video, domain: domain, rung: nil, pass: ItemPass(iteration: 2, shift: time(100)),
      followsGap: true)
    #expect(run.shift == time(100))
    #expect(run.time(time(25)) == time(105))
    #expect(run.time(ticks: Int64(maker.video.timeBase.denominator)) == time(90))
    let packet = try maker.make(time(105), lasting: time(1), of: maker.makeRun(shift: time(100)))
    #expect(packet.time == time(105))
    #expect(packet.end == time(106))
  }
}
