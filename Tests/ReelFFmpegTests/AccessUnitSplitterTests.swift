import ReelCore
import Testing

@testable import ReelFFmpeg

@Suite("Splitting access units")
struct AccessUnitSplitterTests {
  /// A PES packet as the demuxer gives it.
  private struct Piece {
    var bytes: [UInt8]
    var presentation: Int64?
    var decoding: Int64?
    var isCorrupt = false

    init(_ bytes: [UInt8], _ presentation: Int64? = nil, _ decoding: Int64? = nil, isCorrupt: Bool = false) {
      self.bytes = bytes
      self.presentation = presentation
      self.decoding = decoding
      self.isCorrupt = isCorrupt
    }
  }

  /// An access unit as the splitter gives it.
  private struct Unit: Equatable {
    var bytes: [UInt8]
    var presentation: Int64?
    var decoding: Int64?
    var isKey: Bool
    var isCorrupt: Bool

    init(_ packet: Packet) {
      bytes = packet.withBytes { Array($0) }
      presentation = packet.presentationTicks
      decoding = packet.decodingTicks
      isKey = packet.isKey
      isCorrupt = packet.isCorrupt
    }
  }

  private func append(_ piece: Piece, to splitter: inout AccessUnitSplitter) throws {
    let packet = try Packet()
    try packet.setBytes(copying: piece.bytes[...], streamIndex: 0)
    packet.setTimestamps(
      presentationTicks: piece.presentation, decodingTicks: piece.decoding, isKey: false,
      isCorrupt: piece.isCorrupt)
    splitter.append(packet)
  }

  private func unit(_ packet: Packet?) -> Unit? { packet.map(Unit.init) }

  private func split(_ pieces: [Piece], codec: VideoCodec = .h264) throws -> [Unit] {
    var splitter = AccessUnitSplitter(codec: codec, streamIndex: 3)
    var units: [Unit] = []
    for piece in pieces {
      try append(piece, to: &splitter)
      while let packet = try splitter.next() {
        #expect(packet.streamIndex == 3)
        units.append(Unit(packet))
      }
    }
    while let packet = try splitter.flush() { units.append(Unit(packet)) }
    return units
  }

  /// Splits the stream of all units, cut into pieces of every size, and expects the units each time.
  private func expectUnits(
    _ units: [[UInt8]], codec: VideoCodec, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let stream = units.flatMap { $0 }
    for size in Array(1...16) + [64, 188, stream.count] {
      let pieces = stride(from: 0, to: stream.count, by: size).map { start in
        Piece(Array(stream[start..<min(start + size, stream.count)]))
      }
      let found = try split(pieces, codec: codec).map(\.bytes)
      #expect(found.map(trimmed) == units.map(trimmed), "pieces of \(size)", sourceLocation: sourceLocation)
      #expect(found.flatMap { $0 } == stream, "pieces of \(size)", sourceLocation: sourceLocation)
    }
  }

  /// Without the zeros at the ends: that of a long start code may stand in either of two units.
  private func trimmed(_ unit: [UInt8]) -> [UInt8] {
    let head = unit.drop { $0 == 0 }
    return Array(head.prefix((head.lastIndex { $0 != 0 } ?? head.startIndex - 1) + 1 - head.startIndex))
  }

  // MARK: H.264

  @Test("H.264 without delimiters", arguments: [true, false])
  func h264Bare(longStartCode: Bool) throws {
    try expectUnits(
      [
        AnnexB.h264(7, longStartCode: longStartCode, payload: AnnexB.filler(20))
          + AnnexB.h264(8, longStartCode: longStartCode, payload: AnnexB.filler(4))
          + AnnexB.h264Slice(5, longStartCode: longStartCode),
        AnnexB.h264Slice(longStartCode: longStartCode),
        AnnexB.h264Slice(longStartCode: longStartCode, byteCount: 5),
        AnnexB.h264(7, longStartCode: longStartCode, payload: AnnexB.filler(20))
          + AnnexB.h264Slice(5, longStartCode: longStartCode),
      ], codec: .h264)
  }

  @Test("Slices of one H.264 frame stay together")
  func h264Slices() throws {
    let frame = { (type: UInt8) in
      [0, 1, 6, 40, 300, 3599].flatMap { AnnexB.h264Slice(type, firstMacroblock: $0, longStartCode: $0 == 0) }
    }
    try expectUnits([frame(5), frame(1), frame(1)], codec: .h264)
  }

  @Test("Each H.264 field is an access unit")
  func h264Fields() throws {
    let field = { (type: UInt8) in
      [0, 12, 24].flatMap { AnnexB.h264Slice(type, firstMacroblock: $0, longStartCode: $0 == 0) }
    }
    try expectUnits([AnnexB.h264(9, payload: [0x10]) + field(5), field(1), field(1), field(1)], codec: .h264)
  }

  @Test("Data partitions belong to the frame of partition A")
  func h264Partitions() throws {
    let frame =
      AnnexB.h264Slice(2) + AnnexB.h264(3, payload: AnnexB.filler(9))
      + AnnexB.h264(4, payload: AnnexB.filler(9))
    try expectUnits([frame, frame], codec: .h264)
  }

  @Test("An end of sequence or stream stays with the frame before it")
  func h264EndOfSequence() throws {
    try expectUnits(
      [AnnexB.h264Slice() + AnnexB.h264(10), AnnexB.h264(9, payload: [0x10]) + AnnexB.h264Slice(5)],
      codec: .h264)
  }

  @Test("Key units are those with an IDR picture")
  func h264Keys() throws {
    let units = try split(
      [
        Piece(
          AnnexB.h264Slice(5) + AnnexB.h264Slice() + AnnexB.h264(7, payload: AnnexB.filler(9))
            + AnnexB.h264Slice(5))
      ])
    #expect(units.map(\.isKey) == [true, false, true])
  }

  // MARK: HEVC

  @Test("HEVC with delimiters, parameter sets, and SEI before and after")
  func hevc() throws {
    try expectUnits(
      [
        AnnexB.hevc(35, payload: [0x50]) + AnnexB.hevc(32, payload: AnnexB.filler(20))
          + AnnexB.hevc(33, payload: AnnexB.filler(30)) + AnnexB.hevc(34, payload: AnnexB.filler(5))
          + AnnexB.hevc(39, payload: AnnexB.filler(30)) + AnnexB.hevcSlice(19)
          + AnnexB.hevc(40, payload: AnnexB.filler(18)),
        AnnexB.hevcSlice() + AnnexB.hevcSlice(isFirst: false)
          + AnnexB.hevcSlice(isFirst: false, longStartCode: false),
        AnnexB.hevc(39, payload: AnnexB.filler(7)) + AnnexB.hevcSlice(0, longStartCode: false),
        AnnexB.hevcSlice(8) + AnnexB.hevc(37),
        AnnexB.hevc(32, longStartCode: false, payload: AnnexB.filler(20)) + AnnexB.hevcSlice(21),
      ], codec: .hevc)
  }

  @Test("Other layers of HEVC do not begin an access unit")
  func hevcLayers() throws {
    let frame =
      AnnexB.hevcSlice() + AnnexB.hevcSlice(layer: 1) + AnnexB.hevc(39, layer: 1, payload: AnnexB.filler(4))
    try expectUnits([frame, frame], codec: .hevc)
  }

  @Test("Key units of HEVC are its random access frames")
  func hevcKeys() throws {
    let units = try split(
      [Piece([19, 1, 21, 8, 0, 16].flatMap { AnnexB.hevcSlice($0) })], codec: .hevc)
    #expect(units.map(\.isKey) == [true, false, true, false, false, true])
  }

  // MARK: Timestamps

  @Test("Several units in one PES packet: the first has its timestamps")
  func severalUnitsInOne() throws {
    let units = try split([
      Piece(AnnexB.h264Slice(5) + AnnexB.h264Slice() + AnnexB.h264Slice(), 1000, 900),
      Piece(AnnexB.h264Slice() + AnnexB.h264Slice(), 2000, 1900),
    ])
    #expect(units.map(\.presentation) == [1000, nil, nil, 2000, nil])
    #expect(units.map(\.decoding) == [900, nil, nil, 1900, nil])
  }

  @Test("A unit over several PES packets has the timestamps of that which it begins in")
  func unitOverSeveral() throws {
    let unit = AnnexB.h264Slice(5, byteCount: 300)
    let units = try split([
      Piece(Array(unit[..<100]), 1000, 900), Piece(Array(unit[100..<200]), 7, 7), Piece(Array(unit[200...])),
      Piece(AnnexB.h264Slice(), 2000, 1900),
    ])
    #expect(units.map { trimmed($0.bytes) } == [unit, AnnexB.h264Slice()].map(trimmed))
    #expect(units.map(\.presentation) == [1000, 2000])
    #expect(units.map(\.decoding) == [900, 1900])
  }

  @Test(
    "A unit that begins in the middle of a PES packet has its timestamps if it is the first to begin there")
  func unitInTheMiddle() throws {
    let (first, second, third) = (
      AnnexB.h264Slice(5), AnnexB.h264Slice(byteCount: 60), AnnexB.h264Slice(byteCount: 80)
    )
    // The second begins in the first packet, after the first; the third in the second packet.
    var units = try split([
      Piece(first + second[..<30], 1000, 900), Piece(second[30...] + third, 2000, 1900),
    ])
    #expect(units.map(\.presentation) == [1000, nil, 2000])
    // The second begins in the second packet, behind the end of the first; so does the third.
    units = try split([
      Piece(Array(first[..<20]), 1000, 900), Piece(first[20...] + second + third, 2000, 1900),
    ])
    #expect(units.map(\.presentation) == [1000, 2000, nil])
    #expect(units.map(\.decoding) == [900, 1900, nil])
  }

  @Test("The zero byte of a start code may end the PES packet before: remuxers cut there")
  func zeroByteInPacketBefore() throws {
    let delimiter = AnnexB.hevc(35, payload: [0x50])
    let stream = { (type: UInt8) in delimiter + AnnexB.hevcSlice(type) }
    let units = try split(
      [
        Piece(Array(stream(21).dropFirst()) + [0], 1000, 900),
        Piece(Array(stream(1).dropFirst()) + [0], 2000, 1900),
        Piece(Array(stream(1).dropFirst()), 3000, 2900),
      ], codec: .hevc)
    #expect(units.map(\.presentation) == [1000, 2000, 3000])
    #expect(units.map(\.decoding) == [900, 1900, 2900])
  }

  @Test("Timestamps are the same however the bytes come between PES packets", arguments: 5...44)
  func timestampsAtAnyChunking(size: Int) throws {
    let units = (0..<6).map { index in
      AnnexB.h264(9, payload: [0x10]) + AnnexB.h264Slice(index == 0 ? 5 : 1, byteCount: 20 + index * 7)
    }
    // Each unit in pieces of its own; only the first piece has timestamps.
    var pieces: [Piece] = []
    for (index, unit) in units.enumerated() {
      for start in stride(from: 0, to: unit.count, by: size) {
        let bytes = Array(unit[start..<min(start + size, unit.count)])
        pieces.append(start == 0 ? Piece(bytes, Int64(index) * 100, Int64(index) * 100 - 50) : Piece(bytes))
      }
    }
    let found = try split(pieces)
    #expect(found.map { trimmed($0.bytes) } == units.map(trimmed))
    #expect(found.map(\.presentation) == (0..<6).map { $0 * 100 })
    #expect(found.map(\.decoding) == (0..<6).map { $0 * 100 - 50 })
  }

  // MARK: The rest

  @Test("A unit that touches a corrupt PES packet is corrupt, its neighbours are not")
  func corrupt() throws {
    let unit = AnnexB.h264Slice(byteCount: 100)
    let units = try split([
      Piece(unit, 1), Piece(Array(unit[..<50]), 2), Piece(Array(unit[50...]), isCorrupt: true),
      Piece(unit, 3),
      Piece(unit, 4),
    ])
    #expect(units.map(\.isCorrupt) == [false, true, false, false])
  }

  @Test("A unit is complete as soon as the bytes after it begin another one", arguments: [0, 1, 5])
  func following(zeroCount: Int) throws {
    let zeros = [UInt8](repeating: 0, count: zeroCount)
    let sets = AnnexB.h264(7, payload: AnnexB.filler(20))
    let slice = AnnexB.h264Slice(5, byteCount: 100)
    let next = zeros + AnnexB.h264Slice(firstMacroblock: 0)
    var splitter = AccessUnitSplitter(codec: .h264, streamIndex: 0)
    try append(Piece(sets, 1000, 900), to: &splitter)
    #expect(unit(try splitter.next(followedBy: next)) == nil, "no slice yet")
    try append(Piece(slice), to: &splitter)
    #expect(unit(try splitter.next()) == nil)
    #expect(
      unit(try splitter.next(followedBy: Array(next.prefix(zeroCount + 5)))) == nil, "too few bytes to tell")
    // The unit continues: inside its NAL unit, and with another slice.
    #expect(unit(try splitter.next(followedBy: AnnexB.filler(3) + next)) == nil)
    #expect(unit(try splitter.next(followedBy: AnnexB.h264Slice(5, firstMacroblock: 7))) == nil)
    let given = try #require(unit(try splitter.next(followedBy: next)))
    #expect(trimmed(given.bytes) == trimmed(sets + slice))
    #expect(given.presentation == 1000)
    #expect(given.isKey)
    try append(Piece(next, 2000), to: &splitter)
    try append(Piece(AnnexB.h264Slice(), 3000), to: &splitter)
    let second = try #require(unit(try splitter.next()))
    #expect(second.presentation == 2000)
    #expect(trimmed(second.bytes) == trimmed(next))
  }

  @Test("A start code may span the end of the bytes so far", arguments: 1...4)
  func acrossEnd(count: Int) throws {
    let slice = AnnexB.h264Slice(5, byteCount: 100)
    let next = AnnexB.h264Slice(firstMacroblock: 0)
    var splitter = AccessUnitSplitter(codec: .h264, streamIndex: 0)
    try append(Piece(slice + next.prefix(count), 1000), to: &splitter)
    #expect(unit(try splitter.next()) == nil)
    let given = try #require(unit(try splitter.next(followedBy: Array(next.dropFirst(count)))))
    #expect(trimmed(given.bytes) == trimmed(slice))
    try append(Piece(Array(next.dropFirst(count)), 2000), to: &splitter)
    let second = try #require(unit(try splitter.flush()))
    #expect(trimmed(second.bytes) == trimmed(next))
  }

  @Test("Parameter sets without a frame are no unit")
  func noFrame() throws {
    #expect(try split([Piece(AnnexB.h264(7, payload: AnnexB.filler(20)), 1)]).isEmpty)
    #expect(try split([Piece([], 1)]).isEmpty)
    #expect(try split([Piece(AnnexB.filler(1000))]).isEmpty)
  }

  @Test("Random bytes do no harm, and none are lost after the first frame")
  func randomBytes() throws {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<30 {
      let head = AnnexB.h264Slice(5)
      var noise: [UInt8] = []
      for _ in 0..<400 { noise.append([0, 0, 1, .random(in: 0...255, using: &generator)].randomElement()!) }
      let stream = head + noise
      let size = Int.random(in: 1...50, using: &generator)
      let pieces = stride(from: 0, to: stream.count, by: size).map { start in
        Piece(Array(stream[start..<min(start + size, stream.count)]))
      }
      let units = try split(pieces)
      let joined = units.flatMap(\.bytes)
      #expect(Array(stream.prefix(joined.count)) == joined, "\(stream)")
      #expect(try split([Piece(stream)]).map(\.bytes) == units.map(\.bytes), "pieces of \(size): \(stream)")
    }
  }

  @Test("Bytes without an end of a unit are returned before they pile up", arguments: [1, 65_000])
  func endless(byteCount: Int) throws {
    var splitter = AccessUnitSplitter(codec: .h264, streamIndex: 0)
    let piece = Piece([UInt8](repeating: 0x55, count: byteCount), 0)
    var count = 0
    while try splitter.next() == nil {
      try append(piece, to: &splitter)
      count += 1
      try #require(count <= 20_000 && count * byteCount <= 20 << 20)
    }
  }

  @Test("A packet with a time of its own in which no unit begins is a unit of its own")
  func noise() throws {
    let picture: [UInt8] = [0, 0, 1, 0x65, 0x80, 1, 2, 3, 4, 5]
    let noise = [UInt8](repeating: 7, count: 40)
    // At the end, in the middle, at the beginning.
    for place in 0...2 {
      var pieces = [Piece(picture, 0), Piece(picture, 3600)]
      pieces.insert(contentsOf: [Piece(noise, 7200), Piece(noise, 10800)], at: place)
      let units = try split(pieces)
      #expect(units.count == 4, "\(place)")
      #expect(units.filter { $0.bytes == noise }.map(\.presentation) == [7200, 10800], "\(place)")
      #expect(units.filter { $0.bytes == picture }.map(\.presentation) == [0, 3600], "\(place)")
    }
    // The rest of a picture: without a time, with its own, or with that of the next picture.
    for time in [nil, Int64(0), 3600] {
      let units = try split([Piece(picture, 0), Piece(noise, time), Piece(picture, 3600)])
      #expect(units.map(\.presentation) == [0, 3600])
      #expect(units.first?.bytes == picture + noise)
    }
  }
}
