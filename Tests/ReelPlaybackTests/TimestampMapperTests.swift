import ReelCore
import ReelFFmpeg
import ReelTestSupport
import Testing

@testable import ReelReading
@testable import ReelSources

@Suite("Placing packets on the timeline")
struct TimestampMapperTests {
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

  /// A mapper for a transport stream, and a unit at so many seconds by its clock.
  private func stamped(
    _ mapper: inout TimestampMapper, at second: Double?, _ kind: TrackKind = .video
  ) throws -> MediaPacket {
    let ticks = second.map { Int64($0 * 90_000) }
    let packet = mapper.stamped(try maker.makeUnit(pts: ticks, dts: ticks), kind)
    return try #require(packet)
  }

  @Test("The first packet stands where the container begins; sound and video share the offset")
  func first() throws {
    var placement = TimestampMapper.Placement(offset: TimestampOffset(offset: nil))
    placement.start = seconds(40)
    placement.loop = LoopIteration(iteration: 1, shift: seconds(100))
    placement.followsGap = true
    var mapper = TimestampMapper(try container(), placement)
    let sound = try stamped(&mapper, at: 10, .audio)
    let video = try stamped(&mapper, at: 10.5)
    #expect(sound.time == seconds(140))
    #expect(video.time == seconds(1405, 10))
    #expect(sound.span !== video.span)
    #expect(sound.span.offset === video.span.offset)
    #expect(placement.offset.knownValue == seconds(30))
    #expect(video.span.followsGap)
    #expect(video.span.loop.iteration == 1)
    #expect(try stamped(&mapper, at: 11).span === video.span)
  }

  @Test("A offset that is known places a container, wherever it begins by the playlist")
  func knownDomain() throws {
    var placement = TimestampMapper.Placement(offset: TimestampOffset(offset: seconds(-10)))
    placement.start = seconds(3)
    var mapper = TimestampMapper(try container(), placement)
    #expect(try stamped(&mapper, at: 12).time == seconds(2))
  }

  @Test("Timestamps too far from the playlist's are of another offset", arguments: [true, false])
  func checked(isChecked: Bool) throws {
    let offset = TimestampOffset(offset: seconds(-10))
    var placement = TimestampMapper.Placement(offset: offset)
    placement.start = seconds(6)
    placement.isChecked = isChecked
    for (second, isFar) in [(14.0, false), (18, false), (13.9, true), (18.1, true), (500, true)] {
      var mapper = TimestampMapper(try container(), placement)
      let packet = try stamped(&mapper, at: second)
      let isOther = isChecked && isFar
      #expect((packet.span.offset !== offset) == isOther, "\(second)")
      #expect(packet.time == (isOther ? seconds(6) : seconds(Int64(second * 10) - 100, 10)))
    }
    #expect(offset.value == seconds(-10))
  }

  @Test("Packets without a timestamp follow each other")
  func noTimestamps() throws {
    var placement = TimestampMapper.Placement(offset: TimestampOffset(offset: seconds(-10)))
    placement.start = seconds(7)
    var mapper = TimestampMapper(try container(), placement)
    #expect(try stamped(&mapper, at: nil).time == seconds(7))
    let second = try stamped(&mapper, at: nil)
    #expect(second.time == seconds(7) + second.duration)
    #expect(second.duration > .zero)
    #expect(try stamped(&mapper, at: 20).time == seconds(10))
    #expect(try stamped(&mapper, at: nil).time == seconds(10) + second.duration)
  }

  @Test("A packet of a stream that is not played is nothing")
  func notPlayed() throws {
    var mapper = TimestampMapper(
      try container(wantsAudio: false), TimestampMapper.Placement(offset: TimestampOffset(offset: nil)))
    let unit = try maker.makeUnit(pts: 0, dts: 0)
    let sound = mapper.stamped(unit, .audio)
    #expect(sound == nil)
  }

  @Test("A jump of a transport stream's clock is joined, in the packet as well")
  func jump() throws {
    var mapper = TimestampMapper(
      try container(), TimestampMapper.Placement(offset: TimestampOffset(offset: .zero)))
    for index in 0..<50 { _ = try stamped(&mapper, at: Double(index) / 25) }
    let after = try stamped(&mapper, at: 5000)
    #expect(after.time >= seconds(2) && after.time < seconds(21, 10))
    #expect(after.unit.presentationTicks.map { after.span.time(ticks: $0) } == after.time)
    // In other containers a jump is what it says.
    var other = TimestampMapper(
      try container("media/h264.mkv"), TimestampMapper.Placement(offset: TimestampOffset(offset: .zero)))
    for ticks in [0, 40, 90_000] as [Int64] {
      let unit = try maker.makeUnit(pts: ticks, dts: ticks)
      let packet = other.stamped(unit, .video)
      #expect(packet?.time == seconds(ticks, 1000))
    }
  }

  @Test(
    "A file's packets stand where its timestamps say",
    arguments: ["h264-bframes.mp4", "h264.mkv", "vp9.webm"])
  func file(name: String) throws {
    let packets = try readPackets("media/\(name)")
    let golden = try Golden(name)
    #expect(packets.map(\.time).sorted() == golden.frames.map { golden.time($0.ticks) })
    #expect(packets.first?.isKey == true)
    #expect(packets.allSatisfy { $0.byteCount == $0.unit.byteCount && $0.duration > .zero })
  }
}
