import CFFmpeg
import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

/// libavformat's mpegts takes its buffers from pools, whose size an option of Reel's limits.
@Suite("Buffers of MPEG-TS")
struct TransportBufferTests {
  /// A PES packet's payload, and whether its header states the length.
  struct Part: Sendable, CustomTestStringConvertible {
    var byteCount: Int
    var isStated = true
    var testDescription: String { "\(byteCount) bytes\(isStated ? "" : ", not stated")" }
  }

  /// The largest payload that can be stated: PES_packet_length has 16 bits, and counts eight bytes of the header here.
  private static let largest = 65_535 - 8

  @Test(
    "Packets lie within their buffers, padding included",
    arguments: [
      [Part(byteCount: 32_767), Part(byteCount: 32_768), Part(byteCount: 32_769), Part(byteCount: 32_833)],
      [Part(byteCount: 40_000), Part(byteCount: 65_471), Part(byteCount: 65_472), Part(byteCount: largest)],
      [Part(byteCount: 200_000, isStated: false), Part(byteCount: largest), Part(byteCount: 1)],
      [Part(byteCount: 65_535, isStated: false), Part(byteCount: 65_536, isStated: false)],
    ], [188, 192, 204])
  func sizes(parts: [Part], packetSize: Int) throws {
    // Two streams of video and one of audio, packet by packet in turns.
    let pids = [0x100, 0x101, 0x102]
    var stream = TransportBytes(packetSize: packetSize)
    stream.addTables([(0x1b, pids[0]), (0x24, pids[1]), (0x0f, pids[2])])
    var expected: [Int: [UInt8]] = [:]
    for (index, part) in parts.enumerated() {
      var packets: [[[UInt8]]] = []
      for (number, pid) in pids.enumerated() {
        let payload = (0..<part.byteCount).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ index &+ number) }
        expected[pid, default: []] += payload
        packets.append(stream.packets(pid: pid, payload: payload, isStated: part.isStated))
      }
      for position in packets[0].indices { for list in packets { stream.add(list[position]) } }
    }
    let demuxer = try Demuxer(
      source: MemorySource(stream.bytes, isSeekable: false), format: .mpegTS, isSeekable: false, name: "t",
      logger: silentLogger)
    var read: [Int: [UInt8]] = [:]
    while let packet = try demuxer.nextPacket() {
      let buffer = try #require(packet.pointer.pointee.buf).pointee
      let start = try #require(packet.pointer.pointee.data) - (try #require(buffer.data))
      #expect(start + packet.byteCount + Int(AV_INPUT_BUFFER_PADDING_SIZE) <= buffer.size)
      #expect(!packet.isCorrupt)
      let pid = demuxer.streams[packet.streamIndex].number
      packet.withBytes { read[pid, default: []] += $0 }
    }
    #expect(read == expected)
  }
}

@Suite("Guarded memory")
struct GuardTests {
  @Test(
    "A block of FFmpeg ends at a guard page",
    .enabled(if: ProcessInfo.processInfo.environment["REEL_GUARD"] != nil, "Scripts/sanitize sets it"))
  func end() throws {
    let block = try #require(av_malloc(128))
    defer { av_free(block) }
    #expect((UInt(bitPattern: block) + 128) % 4096 == 0)
  }
}

/// An MPEG-TS stream with one program, packet by packet (ISO/IEC 13818-1 §2.4.3).
struct TransportBytes {
  private(set) var bytes: [UInt8] = []
  private let packetSize: Int
  private var counters: [Int: UInt8] = [:]

  /// - Parameter packetSize: 188, or 192 or 204 with other bytes before or after each packet.
  init(packetSize: Int = 188) { self.packetSize = packetSize }

  /// Adds a packet of 188 bytes.
  mutating func add(_ packet: [UInt8]) {
    let rest = [UInt8](repeating: 0, count: packetSize - 188)
    bytes += packetSize == 192 ? rest + packet : packet + rest
  }

  /// Adds a program association and a program map.
  mutating func addTables(_ streams: [(type: UInt8, pid: Int)]) {
    add(packet(pid: 0, [0] + Self.section([0, 0xb0, 13, 0, 1, 0xc1, 0, 0, 0, 1, 0xf0, 0x00]), begins: true))
    let body = streams.flatMap { type, pid -> [UInt8] in
      [type, 0xe0 | UInt8(pid >> 8), UInt8(pid & 0xff), 0xf0, 0]
    }
    let head: [UInt8] = [2, 0xb0, UInt8(13 + body.count), 0, 1, 0xc1, 0, 0, 0xe1, 0, 0xf0, 0]
    add(packet(pid: 0x1000, [0] + Self.section(head + body), begins: true))
  }

  /// Returns the packets of one PES packet with a presentation time of 0.
  mutating func packets(pid: Int, payload: [UInt8], isStated: Bool) -> [[UInt8]] {
    let length = isStated ? payload.count + 8 : 0
    let head: [UInt8] = [
      0, 0, 1, 0xe0, UInt8(length >> 8), UInt8(length & 0xff), 0x80, 0x80, 5, 0x21, 0, 1, 0, 1,
    ]
    var rest = (head + payload)[...]
    var packets: [[UInt8]] = []
    while !rest.isEmpty {
      packets.append(packet(pid: pid, Array(rest.prefix(184)), begins: packets.isEmpty))
      rest = rest.dropFirst(184)
    }
    return packets
  }

  // MARK: - Private

  /// Returns a packet with at most 184 bytes of payload; a shorter one has an adaptation field of stuffing, or after a
  /// section, stuffing bytes.
  private mutating func packet(pid: Int, _ payload: [UInt8], begins: Bool) -> [UInt8] {
    let counter = counters[pid, default: 0]
    counters[pid] = (counter + 1) & 0xf
    let isSection = pid == 0 || pid == 0x1000
    let missing = 184 - payload.count
    let head: [UInt8] = [0x47, (begins ? 0x40 : 0) | UInt8(pid >> 8), UInt8(pid & 0xff)]
    if isSection { return head + [0x10 | counter] + payload + [UInt8](repeating: 0xff, count: missing) }
    guard missing > 0 else { return head + [0x10 | counter] + payload }
    let field = missing == 1 ? [0] : [UInt8(missing - 1), 0] + [UInt8](repeating: 0xff, count: missing - 2)
    return head + [0x30 | counter] + field + payload
  }

  private static func section(_ bytes: [UInt8]) -> [UInt8] { bytes + checksum(bytes) }

  /// The CRC-32 of a section (ISO/IEC 13818-1 annex A).
  static func checksum(_ bytes: [UInt8]) -> [UInt8] {
    var remainder = UInt32.max
    for byte in bytes {
      remainder ^= UInt32(byte) << 24
      for _ in 0..<8 { remainder = remainder << 1 ^ (remainder >> 31 == 1 ? 0x04c1_1db7 : 0) }
    }
    return remainder.bigEndianBytes
  }
}
