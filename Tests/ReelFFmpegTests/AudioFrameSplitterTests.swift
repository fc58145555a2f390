import ReelCore
import Testing

@testable import ReelFFmpeg

@Suite("Audio frames of PES packets")
struct AudioFrameSplitterTests {
  /// A frame of AAC at 44.1 kHz as ADTS has it, filled with `fill`.
  private func adts(_ byteCount: Int, fill: [UInt8] = [0x21]) -> [UInt8] {
    let size = UInt16(byteCount)
    var bytes: [UInt8] = [
      0xff, 0xf1, 0x50, 0x80 | UInt8(size >> 11), UInt8(truncatingIfNeeded: size >> 3),
      UInt8(truncatingIfNeeded: size << 5) | 0x1f, 0xfc,
    ]
    while bytes.count < byteCount { bytes.append(fill[bytes.count % fill.count]) }
    return bytes
  }

  /// A frame of E-AC-3 of 1536 samples at 48 kHz.
  private func eac3(_ byteCount: Int, type: UInt8 = 0, substream: UInt8 = 0) -> [UInt8] {
    let size = UInt16(byteCount / 2 - 1)
    var bytes: [UInt8] = [
      0x0b, 0x77, type << 6 | substream << 3 | UInt8(size >> 8), UInt8(size & 0xff), 0x30, 16 << 3,
    ]
    while bytes.count < byteCount { bytes.append(0x55) }
    return bytes
  }

  /// Runs of bytes as PES packets; `ticks` of those that have some.
  private func packets(_ bytes: [UInt8], sizes: [Int], ticks: [Int64?] = []) throws -> [Packet] {
    var packets: [Packet] = []
    var offset = 0
    while offset < bytes.count {
      let size = min(sizes[packets.count % sizes.count], bytes.count - offset)
      let own = packets.count < ticks.count ? ticks[packets.count] : nil
      packets.append(try makePacket(Array(bytes[offset..<(offset + size)]), ticks: own))
      offset += size
    }
    return packets
  }

  @Test(
    "Frames are the same wherever PES packets are cut", arguments: SoundClip.split,
    [[188], [1000, 311], [4096, 17], [65000]])
  func cuts(sound: SoundClip, sizes: [Int]) throws {
    let (_, whole) = try soundPackets(sound.clip)
    let expected = try splitFrames(whole, codec: sound.codec).map(\.bytes)
    #expect(expected.count > 50)
    let cut = try packets(whole.flatMap(\.bytes), sizes: sizes)
    #expect(try splitFrames(cut, codec: sound.codec).map(\.bytes) == expected)
    // Nothing but Opus has headers that are taken away.
    if sound.codec != .opus { #expect(expected.flatMap { $0 } == whole.flatMap(\.bytes)) }
  }

  @Test("A sample of MP4 may have several frames, and dependent ones; one without a header stays")
  func samples() throws {
    func frames(_ bytes: [UInt8]) throws -> [Packet] {
      try AudioFrameSplitter.frames(
        of: makePacket(bytes, ticks: 5000), codec: .eac3, timeBase: Rational(1, 48_000))
    }
    let several = try frames(eac3(100) + eac3(60, type: 1) + eac3(80))
    #expect(several.map(\.byteCount) == [160, 80])
    #expect(several.map(\.presentationTicks) == [5000, 6536])
    #expect(several.map(\.durationTicks) == [1536, 1536])
    let damaged = try frames([UInt8](repeating: 0, count: 100))
    #expect(damaged.map(\.byteCount) == [100])
    #expect(damaged.map(\.presentationTicks) == [5000])
  }

  @Test("A timestamp is that of the first frame that begins in the PES packet")
  func timestamps() throws {
    // Frames begin at 0, 100, 200, 300, 400; PES packets at 0, 150 and 350.
    let bytes = (0..<5).flatMap { _ in adts(100) }
    let frames = try splitFrames(
      packets(bytes, sizes: [150, 200, 150], ticks: [9000, 20000, 40000]), codec: .aac)
    #expect(frames.map(\.ticks) == [9000, 11089, 20000, 22089, 40000])
    #expect(frames.map(\.durationTicks) == [2089, 2090, 2089, 2090, 2089])
    #expect(frames.allSatisfy { $0.decodingTicks == $0.presentationTicks })
    #expect(frames.allSatisfy { $0.isKey && $0.streamIndex == 1 })
  }

  @Test("Frames behind a timestamp are counted exactly, over PES packets without one")
  func counting() throws {
    let bytes = (0..<1000).flatMap { _ in adts(40) }
    let frames = try splitFrames(packets(bytes, sizes: [130], ticks: [0]), codec: .aac)
    #expect(frames.count == 1000)
    for (index, frame) in frames.enumerated() {
      #expect(frame.presentationTicks == Int64(index * 1024 * 90000 / 44100))
    }
  }

  @Test("Frames before the first timestamp have none")
  func noTimestamp() throws {
    let frames = try splitFrames(
      packets(adts(50) + adts(60), sizes: [50, 60], ticks: [nil, 700]), codec: .aac)
    #expect(frames.map(\.ticks) == [nil, 700])
  }

  @Test("Bytes that are no frame are passed over")
  func garbage() throws {
    let frames = [adts(90, fill: [1]), adts(120, fill: [2]), adts(80, fill: [3]), adts(77, fill: [4])]
    // A header that no other follows, and bytes without any.
    let noise: [UInt8] = [0, 0xff, 0xff] + adts(300, fill: [9])[..<60] + [0xff]
    let bytes = noise + frames[0] + frames[1] + noise + frames[2] + frames[3]
    for sizes in [[10_000], [100], [33, 200]] {
      #expect(try splitFrames(packets(bytes, sizes: sizes), codec: .aac).map(\.bytes) == frames)
    }
  }

  @Test(
    "A PES packet with a time in which no frame begins is handed on as noise, in its place",
    arguments: [0, 0x55])
  func noisyPackets(fill: UInt8) throws {
    let noise = [UInt8](repeating: fill, count: 200)
    let good = adts(100) + adts(100)
    let packets = try [noise, noise, good, noise, good, noise].enumerated().map { index, bytes in
      try makePacket(bytes, ticks: Int64(index) * 4000)
    }
    let found = try splitFrames(packets, codec: .aac)
    #expect(found.map(\.isNoise) == [true, true, false, false, true, false, false, true])
    #expect(found.map(\.ticks) == [0, 4000, 8000, 10089, 12000, 16000, 18089, 20000])
    #expect(found.filter(\.isNoise).map(\.durationTicks) == [4000, 4000, 4000, 4000])
    // A packet that ends a frame, and one without a time, need not begin one.
    let tail = try [
      makePacket(adts(300)[..<150].map { $0 }, ticks: 0), makePacket(adts(300)[150...].map { $0 }),
    ]
    #expect(try splitFrames(tail, codec: .aac).map(\.isNoise) == [false])
  }

  @Test("A header inside a frame is not taken for one")
  func falseHeaders() throws {
    // Every payload is full of headers of frames of 5 bytes more than there are.
    let header = Array(adts(105)[..<7])
    let frames = (0..<4).map { _ in adts(100, fill: header) }
    let bytes = Array(frames[0][50...]) + frames[1] + frames[2] + frames[3]
    #expect(try splitFrames([makePacket(bytes)], codec: .aac).map(\.bytes) == Array(frames[1...]))
  }

  @Test("A damaged length costs what it reaches over, no more")
  func damagedLength() throws {
    var frames = (0..<200).map { adts(100, fill: [UInt8($0)]) }
    frames[3][3] |= 3
    frames[3][4] = 0xff
    let found = try splitFrames(packets(frames.flatMap { $0 }, sizes: [250]), codec: .aac)
    #expect(found.first?.bytes == frames[0])
    #expect(found.suffix(100).map(\.bytes) == Array(frames.suffix(100)))
    // The same at the end of the stream, where the bytes that the length names never come.
    frames = Array(frames[..<10])
    let short = try splitFrames([makePacket(frames.flatMap { $0 })], codec: .aac)
    #expect(short.map(\.bytes) == Array(frames[..<3] + frames[4...]))
  }

  @Test("A frame that is not whole at the end is left out")
  func cutEnd() throws {
    let bytes = adts(100) + adts(100)[..<70]
    #expect(try splitFrames([makePacket(bytes)], codec: .aac).map(\.bytes) == [adts(100)])
  }

  @Test("A frame is given as soon as it is whole")
  func latency() throws {
    let splitter = AudioFrameSplitter(codec: .aac, streamIndex: 1, timeBase: Rational(1, 90000))
    for _ in 0..<3 {
      splitter.append(try makePacket(adts(100)))
      #expect(try splitter.next()?.bytes == adts(100))
      #expect(try splitter.next()?.bytes == nil)
    }
  }

  @Test("Damage is handed on to the frames that it may lie in")
  func corrupt() throws {
    let bytes = adts(100) + adts(100) + adts(100)
    let frames = try splitFrames(
      [
        makePacket(Array(bytes[..<150])), makePacket(Array(bytes[150..<180]), isCorrupt: true),
        makePacket(Array(bytes[180...])),
      ], codec: .aac)
    #expect(frames.map(\.isCorrupt) == [false, true, false])
  }

  @Test("After a reset nothing is left of what was before")
  func reset() throws {
    let splitter = AudioFrameSplitter(codec: .aac, streamIndex: 1, timeBase: Rational(1, 90000))
    splitter.append(try makePacket(adts(100) + adts(100)[..<50], ticks: 5))
    splitter.reset()
    #expect(try splitter.flush()?.bytes == nil)
    splitter.append(try makePacket(adts(60)))
    let packet = try #require(try splitter.next())
    #expect(packet.presentationTicks == nil)
    #expect(packet.byteCount == 60)
  }

  @Test("Dependent frames of E-AC-3 go with the one before; other programmes do not")
  func dependents() throws {
    let main = eac3(100)
    let more = eac3(60, type: 1)
    let other = eac3(80, substream: 1) + eac3(40, type: 1, substream: 1)
    let bytes = [main, more, more, other, main, more, main].flatMap { $0 }
    let frames = try splitFrames(packets(bytes, sizes: [90], ticks: [0]), codec: .eac3)
    let expected: [[UInt8]] = [main + more + more, main + more, main]
    #expect(frames.map(\.bytes) == expected)
    #expect(frames.map(\.ticks) == [0, 2880, 5760])
  }

  @Test("Packets of codecs that have no headers are given as they are")
  func whole() throws {
    let packets = try [makePacket([1, 2, 3], ticks: 7), makePacket([4])]
    let frames = try splitFrames(packets, codec: .pcm)
    #expect(frames.map(\.bytes) == [[1, 2, 3], [4]])
    #expect(frames.map(\.ticks) == [7, nil])
  }

  @Test(
    "Whatever the bytes are, the end is reached",
    arguments: [AudioCodec.aac, .mp3, .ac3, .eac3, .opus], [1 as UInt64, 2, 3])
  func noise(codec: AudioCodec, seed: UInt64) throws {
    var state = seed
    func next() -> UInt8 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 33)
    }
    let starts: [UInt8] = [0xff, 0xf1, 0xfb, 0x0b, 0x77, 0x7f, 0xe0]
    let bytes = (0..<50_000).map { _ in
      let byte = next()
      return byte < 128 ? starts[Int(byte) % starts.count] : next()
    }
    let frames = try splitFrames(packets(bytes, sizes: [184, 1000, 7]), codec: codec)
    #expect(frames.reduce(0) { $0 + $1.byteCount } <= bytes.count)
  }

  @Test("Bytes that are no frames are not kept, nor what is known of their packets")
  func endless() throws {
    let splitter = AudioFrameSplitter(codec: .aac, streamIndex: 0, timeBase: Rational(1, 90_000))
    for index in 0..<1000 {
      splitter.append(try makePacket([UInt8](repeating: 0x55, count: 100), ticks: Int64(index)))
      while let packet = try splitter.next() { #expect(packet.isNoise) }
    }
    let fields = Mirror(reflecting: splitter)
    #expect(try #require(fields.descendant("marks") as? [Any]).count < 3)
    #expect(try #require(fields.descendant("buffer") as? [UInt8]).count < 300)
  }

  @Test("Frames that depend on one are as many as there may be substreams")
  func dependentLimit() throws {
    let bytes = eac3(100) + (0..<20).flatMap { _ in eac3(100, type: 1) } + eac3(100)
    let frames = try splitFrames(packets(bytes, sizes: [188]), codec: .eac3)
    #expect(frames.map(\.bytes.count) == [900, 100])
  }
}
