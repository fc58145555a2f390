import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

/// After a CAVLC parsing error, `avcodec_flush_buffers` leaves coefficients of the macroblock behind, which are added
/// to a later one (see `Decoder`).
@Suite("A decoder after an error", .hangLimit)
struct DecoderRenewalTests {
  /// The first part of a packet.
  private static func cut(_ packet: Packet, to count: Int) throws -> Packet {
    let part = try Packet()
    try part.setBytes(copying: packet.bytes[..<count], streamIndex: packet.streamIndex)
    part.setTimestamps(
      presentationTicks: packet.presentationTicks, decodingTicks: packet.decodingTicks, isKey: true,
      isCorrupt: false)
    return part
  }

  /// The frame that a decoder gives for a single unit.
  private static func drained(_ decoder: Decoder, _ packet: Packet) throws -> Seen? {
    try decoder.send(packet)
    decoder.finish()
    guard case .element(let frame) = try decoder.receive() else { return nil }
    return try Seen(frame)
  }

  @Test(
    "After a truncated first unit, the whole unit decodes as in a new decoder",
    arguments: ["transport/h264-cavlc-at.ts", "transport/h264-cabac-at.ts", "transport/hevc-at.ts"])
  func cuts(path: String) throws {
    let (stream, packets) = try videoUnits(Clip(path))
    let first = try #require(packets.first)
    let expected = try #require(
      try Self.drained(Decoder(stream: stream, name: "fresh", logger: silentLogger), first))
    let decoder = try Decoder(stream: stream, name: "cut", logger: silentLogger)
    var errorCount = 0
    for count in stride(from: first.byteCount - 1, to: max(100, first.byteCount - 200), by: -3) {
      _ = try Self.drained(decoder, Self.cut(first, to: count))
      if decoder.hasReportedError { errorCount += 1 }
      try decoder.flush()
      #expect(!decoder.hasReportedError)
      let whole = try Self.drained(decoder, first)
      try #require(whole == expected, "after \(count) bytes")
      try decoder.flush()
    }
    if !path.contains("hevc") { #expect(errorCount > 0) }
  }

  /// Checks that libavcodec has this bug and that the fixture shows it, so a flush alone is not enough.
  @Test("libavcodec's flush alone leaves a CAVLC decoder corrupted")
  func fault() throws {
    let (stream, packets) = try videoUnits(Clip("transport/h264-cavlc-at.ts"))
    let first = try #require(packets.first)
    let expected = try #require(
      try Self.drained(Decoder(stream: stream, name: "fresh", logger: silentLogger), first))
    var spoiledCount = 0
    for count in stride(from: first.byteCount - 1, to: first.byteCount - 60, by: -1) {
      let decoder = try Decoder(stream: stream, name: "spoiled", logger: silentLogger)
      _ = try Self.drained(decoder, Self.cut(first, to: count))
      decoder.flushWithoutRenewal()
      if try Self.drained(decoder, first) != expected { spoiledCount += 1 }
    }
    withKnownIssue("FFmpeg may fix this one day; decoders then need no replacement", isIntermittent: true) {
      #expect(spoiledCount == 0)
    }
  }

  // MARK: Places where Reel reuses a decoder

  /// `spoiled-cavlc.mp4` has three groups of 12 frames. The second group is damaged from its third packet on, and
  /// the third group is intact.
  private func makeDecoder(_ path: String) throws -> (decoder: VideoDecoder, source: ListedUnits) {
    let (stream, packets) = try videoUnits(Clip(path))
    let source = ListedUnits(packets)
    return (try VideoDecoder(stream: stream, source: source, name: "test", logger: silentLogger), source)
  }

  private func rest(_ decoder: VideoDecoder) throws -> [Seen] {
    var seen: [Seen] = []
    while true {
      switch try decoder.nextFrame() {
      case .element(let frame): seen.append(try Seen(frame))
      case .wait: return seen
      case .end: return seen
      }
    }
  }

  @Test("Frames are intact from the next key frame on, whichever unit was damaged before", arguments: 0..<12)
  func nextKeyFrame(cutUnit: Int) throws {
    let (stream, packets) = try videoUnits(Clip("media/h264-cavlc-gops.mp4"))
    let golden = try Clip("media/h264-cavlc-gops.mp4").golden().frames.map(\.md5)
    // One unit of the first group ends within a macroblock.
    var damaged = packets
    damaged[cutUnit] = try Self.cut(packets[cutUnit], to: packets[cutUnit].byteCount * 3 / 4)
    let decoder = try VideoDecoder(
      stream: stream, source: ListedUnits(damaged), name: "test", logger: silentLogger)
    let seen = try rest(decoder)
    #expect(seen.suffix(24).map(\.md5) == Array(golden.suffix(24)))
    #expect(seen.suffix(24).allSatisfy { !$0.isDamaged })
  }

  @Test("After a seek, frames are those of a new decoder", arguments: [12, 14, 16, 18, 20])
  func seek(after count: Int) throws {
    let golden = try Clip("media/h264-cavlc-gops.mp4").golden().frames.map(\.md5)
    let (decoder, source) = try makeDecoder("bad/spoiled-cavlc.mp4")
    for _ in 0..<count { guard case .element = try decoder.nextFrame() else { break } }
    for key in [24, 0] {
      source.next = key
      try decoder.reset()
      guard case .element(let frame) = try decoder.firstFrame() else {
        Issue.record("no frame at \(key)")
        continue
      }
      #expect(try frame.md5() == golden[key])
      // The decoder was drained for the first frame and is fed its units again.
      guard case .element(let next) = try decoder.nextFrame() else {
        Issue.record("no second frame at \(key)")
        continue
      }
      #expect(try next.md5() == golden[key + 1])
    }
  }

  @Test("Feeding a damaged first unit again gives the same frames as plain decoding")
  func feedingAgain() throws {
    let (stream, packets) = try videoUnits(Clip("media/h264-cavlc-gops.mp4"))
    var damaged = packets
    damaged[0] = try Self.cut(packets[0], to: packets[0].byteCount * 3 / 4)
    let plain = try rest(
      VideoDecoder(stream: stream, source: ListedUnits(damaged), name: "plain", logger: silentLogger))
    let decoder = try VideoDecoder(
      stream: stream, source: ListedUnits(damaged), name: "first", logger: silentLogger)
    guard case .element(let frame) = try decoder.firstFrame() else {
      Issue.record("no first frame")
      return
    }
    let first = try Seen(frame)
    #expect([first] + (try rest(decoder)) == plain)
  }

  // MARK: Parameter sets

  @Test(
    "Key frames of a stream that sends its parameter sets once can be decoded on their own",
    arguments: ["h264-sets-once", "hevc-sets-once"])
  func parameterSets(name: String) throws {
    let (stream, packets) = try videoUnits(Clip("transport/\(name).ts"))
    let golden = try Golden("transport-\(name).ts")
    let keys = packets.indices.filter { packets[$0].isKey }
    try #require(keys.count > 1)
    for key in keys {
      let decoder = try Decoder(stream: stream, name: "test", logger: silentLogger)
      let seen = try #require(try Self.drained(decoder, packets[key]))
      let expected = golden.frames.first { $0.ticks == seen.ticks }
      #expect(seen.md5 == expected?.md5)
    }
  }

  // MARK: Sound

  @Test(
    "After damage and a flush, audio is that of a new decoder",
    arguments: [
      "audio-aac.ts", "audio-aac-5.1.mp4", "audio-ac3.ts", "audio-eac3.mp4", "audio-mp2.ts", "audio-mp3.mp4",
      "audio-vorbis.mkv", "audio-flac.mp4", "audio-alac.mp4", "audio-opus.mp4",
    ])
  func sound(name: String) throws {
    let clip = Clip("media/\(name)")
    var options = ContainerReader.Options()
    options.wantsVideo = false
    options.wantsAudio = true
    let container = try ContainerReader(
      source: MemorySource(clip.bytes()), format: clip.format, options: options, name: name,
      logger: silentLogger)
    let stream = try #require(container.audio)
    var packets: [Packet] = []
    while packets.count < 12, case .audio(let packet) = try container.next() { packets.append(packet) }
    try #require(packets.count > 3)
    let samples = { (decoder: AudioDecoder) in
      try packets.flatMap { try decoder.decode($0) }.flatMap(\.samples)
    }
    let expected = try samples(AudioDecoder(stream: stream, name: "fresh", logger: silentLogger))
    let decoder = try AudioDecoder(stream: stream, name: "damaged", logger: silentLogger)
    for packet in packets {
      _ = try decoder.decode(Self.cut(packet, to: max(1, packet.byteCount * 2 / 3)))
      _ = try decoder.decode(packet)
    }
    try decoder.flush()
    #expect(try samples(decoder) == expected)
  }
}
