import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

@Suite("H.264 whose fields are separate units")
struct FieldPairsTests {
  static let names = ["h264-fields.ts", "h264-fields.mkv", "h264-fields.mp4", "h264-fields.h264"]

  private func video(_ bytes: [UInt8], _ format: ContainerFormat) throws -> [Packet] {
    try videoUnits(bytes, format).packets
  }

  @Test("Two fields are one unit, and its key frames are those that decoding can start at", arguments: names)
  func units(name: String) throws {
    let clip = Clip("media/\(name)")
    let packets = try video(clip.bytes(), clip.format)
    #expect(packets.count == 24)
    #expect(packets.indices.filter { packets[$0].isKey } == [0, 8, 16])
    #expect(packets.allSatisfy { !$0.isField })
    #expect(
      try packets.map(\.presentationTicks) == clip.golden().frames.map { clip.hasTimestamps ? $0.ticks : nil }
    )
  }

  @Test("The frame rate counts frames, and a unit lasts as long as both fields", arguments: names)
  func rate(name: String) throws {
    let clip = Clip("media/\(name)")
    let reader = try makeReader(clip)
    let frame = try #require(try reader.firstFrame())
    #expect(frame.isInterlaced)
    #expect(reader.decoder.frameRate?.value == 25)
    #expect(reader.container.streams[0].averageFrameRate == reader.stream.averageFrameRate)
    guard let stated = try video(clip.bytes(), clip.format).first?.durationTicks, stated > 0 else { return }
    #expect(reader.stream.time(ticks: stated) == MediaTime(value: 1, timescale: 25))
  }

  @Test(
    "Raw H.264 that states no rate has 25 frames a second, as ffmpeg says",
    arguments: ["h264-fields-untimed.h264", "h264-untimed.h264"])
  func usualRate(name: String) throws {
    let packets = try video(Fixtures.bytes("media/\(name)"), .h264)
    #expect(packets.count == 24)
    #expect(packets.allSatisfy { $0.durationTicks == 48_000 }, "of 1,200,000 ticks a second")
  }

  @Test("A field without the other one is a unit of its own, and all frames but this one come out")
  func lone() throws {
    let index = 3
    // An access unit delimiter precedes each field.
    let bytes = try Fixtures.bytes("media/h264-fields.h264")
    let starts = bytes.indices.filter { bytes[$0...].starts(with: [0, 0, 0, 1, 9]) } + [bytes.count]
    let fields = zip(starts, starts.dropFirst()).map { bytes[$0..<$1] }
    try #require(fields.count == 48)
    for lost in [2 * index, 2 * index + 1] {
      let rest = fields.indices.filter { $0 != lost }.flatMap { fields[$0] }
      let packets = try video(rest, .h264)
      #expect(packets.count == 24)
      #expect(packets.indices.filter { packets[$0].isField } == [index])
      let frames = try makeReader(rest, .h264).rest().map(\.md5)
      let golden = try Golden("h264-fields.h264").frames.map(\.md5)
      #expect(Set(golden).subtracting(frames) == [golden[index]])
    }
  }

  @Test("Cut or damaged parameter sets and slices are no fields")
  func damaged() throws {
    let bytes = try Fixtures.bytes("media/h264-fields.h264").prefix(2000)
    for place in 0..<120 {
      var damaged = Array(bytes)
      damaged[place] = 0xff
      _ = try? video(damaged, .h264)
      _ = try? video(Array(bytes.prefix(place)), .h264)
    }
  }
}
