import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

@Suite("A transport stream whose program changes", .hangLimit)
struct ProgramSourceTests {
  // MARK: Streams of the fixtures

  private static let parts = ["h264.ts", "hevc.ts", "h264.ts", "audio-ac3.ts"]

  private static func bytes(_ names: [String]) throws -> [UInt8] {
    try names.flatMap { try Fixtures.bytes("media/\($0)") }
  }

  @Test(
    "Each part is decoded as ffmpeg decodes it alone", arguments: [0, 4, 16], [188, 1000, .max])
  func frames(frame: Int, chunkByteCount: Int) throws {
    let bytes = Self.framed(try Self.bytes(Self.parts), by: frame)
    let reader = try ClipReader(
      source: MemorySource(bytes, chunkByteCount: chunkByteCount, isSeekable: false), format: .mpegTS,
      name: "parts", logger: silentLogger)
    var seen: [String] = []
    while let frame = try reader.nextFrame() { seen.append(try frame.md5()) }
    #expect(seen == (try Self.parts.flatMap { try Golden($0).frames.map(\.md5) }))
    #expect(reader.damagedCount == 0)
    #expect(reader.rejectedPacketCount == 0)
  }

  @Test("The streams are those of the part that is read, and its sound with them")
  func streams() throws {
    let names = ["audio-aac.ts", "audio-ac3.ts"]
    var options = ContainerReader.Options()
    options.isSeekable = false
    options.wantsAudio = true
    let reader = try ContainerReader(
      source: MemorySource(try Self.bytes(names), isSeekable: false), format: .mpegTS, options: options,
      name: "parts", logger: silentLogger)
    #expect(reader.audio?.codecName == "aac")
    var changes: [Int64] = []
    var counts: [Int] = [0]
    loop: while true {
      switch try reader.next() {
      case .audio: counts[counts.count - 1] += 1
      case .video: break
      case .programChanged:
        changes.append(reader.position)
        counts.append(0)
        #expect(reader.audio?.codecName == "ac3")
        #expect(reader.video?.codecName == "h264")
      case .end: break loop
      }
    }
    let first = try Fixtures.bytes("media/audio-aac.ts").count
    #expect(changes.count == 1)
    // Places are of the source, though the tables are read twice.
    #expect(changes.allSatisfy { (first..<first + 64 * 188).contains(Int($0)) })
    #expect(counts.allSatisfy { $0 > 50 })
    #expect(!reader.isSeekable)
  }

  @Test(
    "The same program over again is no change", arguments: [["h264.ts", "h264.ts"], ["hevc.ts", "hevc.ts"]])
  func same(names: [String]) throws {
    let source = ProgramSource(MemorySource(try Self.bytes(names), isSeekable: false))
    source.watch(pids: [0x100, 0x101])
    #expect(try Self.all(of: source) == (try Self.bytes(names)))
    #expect(!source.isAtChange)
  }

  @Test("Bytes that are no transport stream pass as they are", arguments: [0, 1, 187, 188, 500, 20_000])
  func noise(count: Int) throws {
    var random = SystemRandomNumberGenerator()
    let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
    #expect(try Self.all(of: ProgramSource(MemorySource(bytes, chunkByteCount: 333))) == bytes)
    let clip = try Fixtures.bytes("media/h264.ts")
    let damaged = Array(clip.prefix(5000)) + bytes + Array(clip.dropFirst(5000))
    #expect(try Self.all(of: ProgramSource(MemorySource(damaged, chunkByteCount: 333))) == damaged)
  }

  @Test("What was read ahead is read again by who looks for a place")
  func seeking() throws {
    let bytes = try Fixtures.bytes("media/h264.ts")
    let source = ProgramSource(MemorySource(bytes))
    var buffer = [UInt8](repeating: 0, count: 1000)
    let count = try buffer.withUnsafeMutableBytes { try source.read(into: $0) }
    try source.setPassive(true)
    let passive = try buffer.withUnsafeMutableBytes { try source.read(into: $0) }
    #expect(Array(buffer.prefix(passive)) == Array(bytes[count..<count + passive]))
    try source.seek(to: 188 * 7)
    try source.setPassive(false)
    #expect(try Self.all(of: source) == Array(bytes.dropFirst(188 * 7)))
  }

  // MARK: Tables

  private static let avc: UInt8 = 0x1b
  private static let hevc: UInt8 = 0x24
  private static let aac: UInt8 = 0x0f

  /// Notes the packets of a section; true where one of them was a change.
  private func record(_ tables: inout ProgramTables, pid: Int, _ section: [UInt8], isDamaged: Bool = false)
    -> Bool
  {
    var section = section + TransportBytes.checksum(section)
    if isDamaged { section[section.count - 1] ^= 1 }
    return Self.packets(of: section, pid: pid).map { tables.record($0[...]) }.contains(true)
  }

  private func begun(_ streams: [(UInt8, Int)], watched: Set<Int>?) -> ProgramTables {
    var tables = ProgramTables()
    _ = record(&tables, pid: 0, Self.association([1: 0x1000]))
    #expect(!record(&tables, pid: 0x1000, Self.map(1, streams)))
    tables.watched = watched
    return tables
  }

  @Test("Another codec or PID of a stream that is watched is a change, others are none")
  func changes() {
    let old: [(UInt8, Int)] = [(Self.avc, 256), (Self.aac, 257), (Self.aac, 258)]
    let cases: [(streams: [(UInt8, Int)], isChange: Bool)] = [
      (old, false),
      ([(Self.hevc, 256), (Self.aac, 257)], true),
      ([(Self.avc, 300), (Self.aac, 257)], true),
      ([(Self.avc, 256), (0x81, 257)], true),
      // Not watched.
      ([(Self.avc, 256), (Self.aac, 257), (0x81, 258)], false),
      ([(Self.avc, 256), (Self.aac, 257)], false),
      ([(Self.avc, 256), (Self.aac, 257), (Self.hevc, 259)], false),
      // Nothing takes its place.
      ([(Self.avc, 256)], false),
      ([(Self.aac, 257)], false),
    ]
    for (streams, isChange) in cases {
      var tables = begun(old, watched: [256, 257])
      #expect(record(&tables, pid: 0x1000, Self.map(1, streams, version: 1)) == isChange, "\(streams)")
    }
  }

  @Test("A damaged map, one that is not yet in force, and one of another program are no change")
  func noChanges() {
    let new: [(UInt8, Int)] = [(Self.hevc, 256)]
    var tables = begun([(Self.avc, 256)], watched: [256])
    #expect(!record(&tables, pid: 0x1000, Self.map(1, new), isDamaged: true))
    #expect(!record(&tables, pid: 0x1000, Self.map(1, new, isCurrent: false)))
    #expect(!record(&tables, pid: 0x1100, Self.map(1, new)))
    _ = record(&tables, pid: 0, Self.association([1: 0x1000, 2: 0x1100]))
    #expect(!record(&tables, pid: 0x1100, Self.map(2, new)))
    #expect(record(&tables, pid: 0x1000, Self.map(1, new)))
  }

  @Test("A program in the place of one that is no longer listed is a change")
  func replaced() {
    var tables = begun([(Self.avc, 256)], watched: [256])
    _ = record(&tables, pid: 0, Self.association([7: 0x1100]))
    #expect(record(&tables, pid: 0x1100, Self.map(7, [(Self.hevc, 400)])))
  }

  @Test("A map of several packets is one, and is gone on with whole")
  func long() throws {
    let many = (0..<60).map { (Self.aac, 300 + $0) }
    var tables = begun([(Self.avc, 256)] + many, watched: [256])
    #expect(record(&tables, pid: 0x1000, Self.map(1, [(Self.hevc, 256)] + many)))
    let packets = tables.begin()
    #expect(packets.count == 3)
    #expect(packets.allSatisfy { $0.count == 188 && $0[0] == TransportPacket.syncByte })
    // It has become the one that later ones are compared with.
    tables.watched = [256]
    #expect(!record(&tables, pid: 0x1000, Self.map(1, [(Self.hevc, 256)] + many)))
    #expect(record(&tables, pid: 0x1000, Self.map(1, [(Self.avc, 256)] + many)))
  }

  @Test("Packets of tables without bytes, and parts of an association without end, are not kept")
  func endless() throws {
    var tables = begun([(Self.avc, 256)], watched: [256])
    // The parts after the first one.
    var association = Self.association([1: 0x1000])
    association[6] = 1
    for _ in 0..<1000 { _ = record(&tables, pid: 0, association) }
    // The map of another program, with empty packets inside it.
    let streams = [(Self.hevc, 256)] + (0..<60).map { (Self.aac, 300 + $0) }
    let section = Self.map(1, streams)
    let packets = Self.packets(of: section + TransportBytes.checksum(section), pid: 0x1000)
    let empty: [UInt8] = [0x47, 0x10, 0, 0x30, 183] + [UInt8](repeating: 0xff, count: 183)
    let parts = [packets[0]] + (0..<1000).map { _ in empty } + packets.dropFirst()
    let changes = parts.map { tables.record($0[...]) }
    #expect(changes.firstIndex(of: true) == parts.count - 1)
    let kept = tables.begin()
    #expect(kept.count <= 256 + packets.count)
  }

  @Test("Nothing that packets may hold does harm", arguments: 0..<50 as Range<UInt64>)
  func fuzzed(seed: UInt64) throws {
    var bytes = Self.packets(of: Self.association([1: 0x1000]), pid: 0).joined() + [UInt8]()
    bytes += Self.packets(of: Self.map(1, [(Self.avc, 256)]), pid: 0x1000).joined()
    bytes = Array((0..<40).map { _ in bytes }.joined())
    var state = seed
    for _ in 0..<200 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      bytes[Int(state >> 33) % bytes.count] = UInt8(truncatingIfNeeded: state >> 24)
    }
    let source = ProgramSource(MemorySource(bytes, chunkByteCount: 500))
    var count = 0
    repeat {
      source.proceed()
      count += try Self.all(of: source).count
    } while source.isAtChange
    #expect(count >= bytes.count - 188 * 200)
  }

  // MARK: - Private

  private static func all(of source: ProgramSource) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 777)
    while true {
      let count = try buffer.withUnsafeMutableBytes { try source.read(into: $0) }
      guard count > 0 else { return bytes }
      bytes += buffer.prefix(count)
    }
  }

  /// Packets with a time stamp before them (4), or check bytes behind them (16).
  private static func framed(_ bytes: [UInt8], by count: Int) -> [UInt8] {
    let rest = [UInt8](repeating: 0, count: count)
    return stride(from: 0, to: bytes.count, by: 188).flatMap { start -> [UInt8] in
      let packet = bytes[start..<start + 188]
      return count == 4 ? rest + packet : packet + rest
    }
  }

  private static func association(_ programs: [Int: Int]) -> [UInt8] {
    section(
      table: 0, id: 1,
      programs.sorted { $0.key < $1.key }.flatMap { program, pid -> [UInt8] in
        [UInt8(program >> 8), UInt8(program & 0xff), 0xe0 | UInt8(pid >> 8), UInt8(pid & 0xff)]
      })
  }

  private static func map(
    _ program: Int, _ streams: [(type: UInt8, pid: Int)], version: UInt8 = 0, isCurrent: Bool = true
  ) -> [UInt8] {
    // The clock's PID, and no descriptors.
    let head: [UInt8] = [0xe1, 0x00, 0xf0, 0x00]
    let body = streams.flatMap { type, pid -> [UInt8] in
      [type, 0xe0 | UInt8(pid >> 8), UInt8(pid & 0xff), 0xf0, 0x00]
    }
    return section(table: 2, id: program, head + body, version: version, isCurrent: isCurrent)
  }

  /// Without its checksum (ISO/IEC 13818-1 §2.4.4.11).
  private static func section(
    table: UInt8, id: Int, _ body: [UInt8], version: UInt8 = 0, isCurrent: Bool = true
  ) -> [UInt8] {
    let count = 5 + body.count + 4
    let head: [UInt8] = [
      table, 0xb0 | UInt8(count >> 8), UInt8(count & 0xff), UInt8(id >> 8), UInt8(id & 0xff),
      0xc0 | version << 1 | (isCurrent ? 1 : 0), 0, 0,
    ]
    return head + body
  }

  private static func packets(of section: [UInt8], pid: Int) -> [[UInt8]] {
    var rest = [0] + section
    var packets: [[UInt8]] = []
    while !rest.isEmpty {
      let part = rest.prefix(184)
      rest.removeFirst(part.count)
      let start: UInt8 = packets.isEmpty ? 0x40 : 0
      let head = [
        TransportPacket.syncByte, start | UInt8(pid >> 8), UInt8(pid & 0xff),
        0x10 | UInt8(packets.count & 0xf),
      ]
      packets.append(head + part + [UInt8](repeating: 0xff, count: 184 - part.count))
    }
    return packets
  }
}
