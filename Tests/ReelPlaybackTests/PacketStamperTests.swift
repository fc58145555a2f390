import ReelCore
import ReelFFmpeg
import ReelTestSupport
import Testing

@testable import ReelPlayback

@Suite("Placing packets on the timeline")
struct PacketStamperTests {
  private let maker: PacketMaker

  init() throws { maker = try PacketMaker() }

  private func seconds(_ value: Int64, _ timescale: Int32 = 1) -> MediaTime {
    MediaTime(value: value, timescale: timescale)
  }

  private func container(_ path: String = "media/h264.ts", wantsAudio: Bool = true) throws -> ContainerReader
  {
    var options = ContainerReader.Options()
    options.wantsAudio = wantsAudio
    return try makeContainer(path, options: options)
  }

  /// A stamper for a transport stream, and a unit at so many seconds by its clock.
  private func stamped(
    _ stamper: inout PacketStamper, at second: Double?, _ kind: MediaPacket.Kind = .video
  ) throws -> MediaPacket {
    let ticks = second.map { Int64($0 * 90_000) }
    return try #require(try stamper.stamped(maker.makeUnit(pts: ticks, dts: ticks), kind))
  }

  @Test("The first packet stands where the container begins; sound and video share the domain")
  func first() throws {
    var placement = PacketStamper.Placement(domain: TimestampDomain(offset: nil))
    placement.start = seconds(40)
    placement.pass = ItemPass(iteration: 1, shift: seconds(100))
    placement.followsGap = true
    var stamper = PacketStamper(try container(), placement)
    let sound = try stamped(&stamper, at: 10, .audio)
    let video = try stamped(&stamper, at: 10.5)
    #expect(sound.time == seconds(140))
    #expect(video.time == seconds(1405, 10))
    #expect(sound.run !== video.run)
    #expect(sound.run.domain === video.run.domain)
    #expect(placement.domain.knownOffset == seconds(30))
    #expect(video.run.followsGap)
    #expect(video.run.pass.iteration == 1)
    #expect(try stamped(&stamper, at: 11).run === video.run)
  }

  @Test("A domain that is known places a container, wherever it begins by the playlist")
  func knownDomain() throws {
    var placement = PacketStamper.Placement(domain: TimestampDomain(offset: seconds(-10)))
    placement.start = seconds(3)
    var stamper = PacketStamper(try container(), placement)
    #expect(try stamped(&stamper, at: 12).time == seconds(2))
  }

  @Test("Timestamps too far from the playlist's are of another domain", arguments: [true, false])
  func checked(isChecked: Bool) throws {
    let domain = TimestampDomain(offset: seconds(-10))
    var placement = PacketStamper.Placement(domain: domain)
    placement.start = seconds(6)
    placement.isChecked = isChecked
    for (second, isFar) in [(14.0, false), (18, false), (13.9, true), (18.1, true), (500, true)] {
      var stamper = PacketStamper(try container(), placement)
      let packet = try stamped(&stamper, at: second)
      let isOther = isChecked && isFar
      #expect((packet.run.domain !== domain) == isOther, "\(second)")
      #expect(packet.time == (isOther ? seconds(6) : seconds(Int64(second * 10) - 100, 10)))
    }
    #expect(domain.offset == seconds(-10))
  }

  @Test("Packets without a timestamp follow each other")
  func noTimestamps() throws {
    var placement = PacketStamper.Placement(domain: TimestampDomain(offset: seconds(-10)))
    placement.start = seconds(7)
    var stamper = PacketStamper(try container(), placement)
    #expect(try stamped(&stamper, at: nil).time == seconds(7))
    let second = try stamped(&stamper, at: nil)
    #expect(second.time == seconds(7) + second.duration)
    #expect(second.duration > .zero)
    #expect(try stamped(&stamper, at: 20).time == seconds(10))
    #expect(try stamped(&stamper, at: nil).time == seconds(10) + second.duration)
  }

  @Test("A packet of a stream that is not played is nothing")
  func notPlayed() throws {
    var stamper = PacketStamper(
      try container(wantsAudio: false), PacketStamper.Placement(domain: TimestampDomain(offset: nil)))
    let unit = try maker.makeUnit(pts: 0, dts: 0)
    let sound = try stamper.stamped(unit, .audio)
    #expect(sound == nil)
  }

  @Test("A jump of a transport stream's clock is joined, in the packet as well")
  func jump() throws {
    var stamper = PacketStamper(
      try container(), PacketStamper.Placement(domain: TimestampDomain(offset: .zero)))
    for index in 0..<50 { _ = try stamped(&stamper, at: Double(index) / 25) }
    let after = try stamped(&stamper, at: 5000)
    #expect(after.time >= seconds(2) && after.time < seconds(21, 10))
    #expect(after.box.packet.presentationTicks.map { after.run.time(ticks: $0) } == after.time)
    // In other containers a jump is what it says.
    var other = PacketStamper(
      try container("media/h264.mkv"), PacketStamper.Placement(domain: TimestampDomain(offset: .zero)))
    for ticks in [0, 40, 90_000] as [Int64] {
      let unit = try maker.makeUnit(pts: ticks, dts: ticks)
      #expect(try #require(try other.stamped(unit, .video)).time == seconds(ticks, 1000))
    }
  }

  @Test(
    "A file's packets stand where its timestamps say",
    arguments: ["h264-bframes.mp4", "h264.mkv", "vp9.webm"])
  func file(name: String) throws {
    let packets = try readPackets("media/\(name)").map(\.packet)
    let golden = try Golden(name)
    #expect(packets.map(\.time).sorted() == golden.pictures.map { golden.time($0.ticks) })
    #expect(packets.first?.isKey == true)
    #expect(packets.allSatisfy { $0.byteCount == $0.box.packet.byteCount && $0.duration > .zero })
  }
}
