import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

@Suite("Packed audio")
struct PackedAudioTests {
  struct Packing: Sendable, CustomTestStringConvertible {
    let name: String
    let format: ContainerFormat
    let sampleCount: Int

    var testDescription: String { name }

    func segment(_ index: Int) throws -> [UInt8] {
      try Fixtures.bytes("hls-packed/\(name)/\(index).\(name)")
    }

    func joined() throws -> [UInt8] { try (0..<3).flatMap { try segment($0) } }

    static let all = [
      Packing(name: "aac", format: .aac, sampleCount: 1024),
      Packing(name: "mp3", format: .mp3, sampleCount: 1152),
      Packing(name: "ac3", format: .ac3, sampleCount: 1536),
      Packing(name: "ec3", format: .eac3, sampleCount: 1536),
    ]
  }

  /// The packets of packed audio, read in small pieces, and their stream.
  private func read(
    _ bytes: [UInt8], as format: ContainerFormat, chunkByteCount: Int = .max
  ) throws -> (container: ContainerReader, stream: StreamInfo, packets: [Packet]) {
    var options = ContainerReader.Options()
    options.wantsVideo = false
    options.wantsAudio = true
    options.isSeekable = false
    let container = try ContainerReader(
      source: MemorySource(bytes, chunkByteCount: chunkByteCount, isSeekable: false), format: format,
      options: options, name: "test", logger: silentLogger)
    var packets: [Packet] = []
    while case .audio(let packet) = try container.next() { packets.append(packet) }
    return (container, try #require(container.audio), packets)
  }

  private func times(_ stream: StreamInfo, _ packets: [Packet]) throws -> [Double] {
    try packets.map { stream.time(ticks: try #require($0.presentationTicks)).seconds }
  }

  /// The bytes of segments without their tags.
  private func untagged(_ bytes: [UInt8]) throws -> [UInt8] {
    Array(bytes.dropFirst(try #require(ID3Tag.byteCount(bytes[...]))))
  }

  @Test("The format is detected with a tag and without", arguments: Packing.all)
  func formats(packing: Packing) throws {
    let bytes = try packing.segment(1)
    #expect(PackedAudio.format(of: bytes) == packing.format)
    #expect(PackedAudio.format(of: Array(bytes.prefix(1024))) == packing.format)
    #expect(PackedAudio.format(of: try untagged(bytes)) == packing.format)
  }

  @Test("Other bytes are not taken for packed audio")
  func otherFormats() {
    #expect(PackedAudio.format(of: []) == nil)
    #expect(PackedAudio.format(of: Array("ID3 is a format of tags, and this is a text".utf8)) == nil)
    #expect(PackedAudio.format(of: [0xff, 0xfb, 0x90, 0x64] + [UInt8](repeating: 7, count: 4000)) == nil)
    #expect(PackedAudio.format(of: [UInt8](repeating: 0xff, count: 4000)) == nil)
    // A music file whose tag has an image.
    #expect(PackedAudio.format(of: Array("ID3".utf8) + [4, 0, 0, 0, 10, 0, 0] + [1, 2, 3]) == .mp3)
  }

  @Test("Segments in a row decode as ffmpeg decodes them", arguments: Packing.all, [1, 7, Int.max])
  func golden(packing: Packing, chunkByteCount: Int) throws {
    let golden = try Golden("packed-\(packing.name).sound")
    let (container, stream, packets) = try read(
      packing.joined(), as: packing.format, chunkByteCount: chunkByteCount)
    #expect(container.hasTimestamps)
    let buffers = try decodeSound(stream, packets)
    #expect(try buffers.map { try $0.md5() } == golden.frames.map(\.md5))
    for (index, time) in try times(stream, packets).enumerated() {
      #expect(abs(time - Double(index * packing.sampleCount) / 48000) < 0.000_1)
    }
    #expect(container.position == Int64(try packing.joined().count))
  }

  @Test("A segment begins at the time of its tag", arguments: Packing.all)
  func tag(packing: Packing) throws {
    let first = try read(packing.segment(0), as: packing.format)
    let second = try read(packing.segment(1), as: packing.format)
    let time = try #require(try times(second.stream, second.packets).first)
    #expect(abs(time - Double(first.packets.count * packing.sampleCount) / 48000) < 0.000_1)
  }

  /// A tag with a time.
  private func tag(flags: UInt8 = 0, owner: String, _ ticks: UInt64) -> [UInt8] {
    let content = Array("PRIV".utf8) + [0, 0, 0, 53, 0, 0] + Array(owner.utf8) + [0]
    let value = (0..<8).map { UInt8(truncatingIfNeeded: ticks >> (56 - 8 * $0)) }
    let footer = [UInt8](repeating: 0, count: flags & 0x10 != 0 ? 10 : 0)
    return Array("ID3".utf8) + [4, 0, flags, 0, 0, 0, UInt8(content.count + 8)] + content + value + footer
  }

  @Test("A time counts in a tag with a large image, and the last one of several tags")
  func largeTag() throws {
    let (packing, owner) = (Packing.all[0], "com.apple.streaming.transportStreamTimestamp")
    let frames = try untagged(packing.segment(0))
    // A frame for an image after that of the time.
    let image = Array("APIC".utf8) + [UInt8](repeating: 0x55, count: 200_000)
    let small = tag(owner: owner, 90_000)
    let content = small.dropFirst(10) + image
    let size = [21, 14, 7, 0].map { UInt8(content.count >> $0 & 0x7f) }
    let large = Array(small.prefix(6)) + size + content
    for (tags, expected) in [(large, 1.0), (large + small, 1.0), (small + tag(owner: owner, 180_000), 2.0)] {
      for chunkByteCount in [100, Int.max] {
        let (container, stream, packets) = try read(
          tags + frames, as: packing.format, chunkByteCount: chunkByteCount)
        #expect(container.hasTimestamps)
        #expect(try times(stream, packets).first == expected)
        #expect(container.position == Int64(tags.count + frames.count))
      }
    }
  }

  @Test("Without a tag, times count from 0", arguments: Packing.all)
  func noTag(packing: Packing) throws {
    let (container, stream, packets) = try read(untagged(packing.segment(1)), as: packing.format)
    #expect(!container.hasTimestamps)
    #expect(try times(stream, packets).first == 0)
    #expect(packets.count > 20)
  }

  @Test("A later tag sets the time", arguments: Packing.all)
  func jump(packing: Packing) throws {
    // The segment in the middle is missing.
    let bytes = try packing.segment(0) + packing.segment(2)
    let (_, stream, packets) = try read(bytes, as: packing.format, chunkByteCount: 100)
    let steps = try zip(times(stream, packets).dropFirst(), times(stream, packets)).map { $0 - $1 }
    #expect(steps.filter { $0 > 0.9 }.count == 1)
  }

  @Test("Damage is skipped, and so are bytes after the last frame", arguments: Packing.all)
  func damage(packing: Packing) throws {
    let whole = try read(packing.segment(0), as: packing.format).packets.count
    var bytes = try packing.segment(0)
    for index in 1000..<1040 { bytes[index] = 0xff }
    let damaged = try read(bytes, as: packing.format).packets.count
    #expect(damaged > whole - 8 && damaged <= whole)
    let trailed = try packing.segment(0) + Array("TAG".utf8) + [UInt8](repeating: 0x20, count: 125)
    #expect(try read(trailed, as: packing.format).packets.count == whole)
    #expect(try read(Array(packing.segment(0).dropLast(3)), as: packing.format).packets.count == whole - 1)
  }

  @Test("The tag has a size, a footer or none, and a time of 33 bits")
  func tags() throws {
    let owner = "com.apple.streaming.transportStreamTimestamp"
    #expect(ID3Tag(tag(owner: owner, 90_000)[...])?.timestamp == 90_000)
    #expect(ID3Tag(tag(owner: owner, 1 << 40 | 5)[...])?.timestamp == 5)
    #expect(ID3Tag(tag(owner: "org.example", 90_000)[...])?.timestamp == nil)
    let footed = tag(flags: 0x10, owner: owner, 7)
    #expect(ID3Tag(footed[...])?.byteCount == footed.count)
    #expect(ID3Tag(footed.dropLast()) == nil)
  }
}
