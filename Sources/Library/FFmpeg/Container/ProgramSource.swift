internal import CFFmpeg
internal import ReelCore

/// An MPEG-TS stream up to a change of its program: a played stream continues with another codec or PID.
///
/// libavformat keeps the first codec of a PID (libavformat/mpegts.c, pmt_cb) and does not follow a program to
/// other PIDs. Therefore, the bytes end before the new program, which makes the demuxer return everything it
/// holds of the old one. After `proceed()` they continue with the tables of the new one, for another demuxer.
///
/// It also knows the beginning of the PES packet after a video packet before the demuxer has read that far
/// (`opening(after:)`). For this it withholds the end of a PES packet with a stated length until the next one
/// of its stream has begun.
///
/// The demuxer does not get bytes that precede the first packet of a source.
///
/// Program association and program map sections are those of ISO/IEC 13818-1 §2.4.4; a section with a wrong
/// checksum is ignored.
final class ProgramSource: ByteSource {
  var byteCount: Int64? { base.byteCount.map { max(0, $0 - (leadingCount ?? 0)) } }
  let isSeekable: Bool
  /// The position in the source at which the demuxer would have begun, had it read the source without a
  /// change.
  private(set) var origin: Int64 = 0
  /// True if the program changes after the bytes that were read.
  private(set) var isAtChange = false
  /// True if the source ended with an incomplete transport packet.
  private(set) var endsInsidePacket = false
  /// The position of the first of the bytes outside of packets; nil within packets.
  private var lossStart: Int64?
  private var damage: String?

  private let base: any ByteSource
  private var isPassive = false
  /// Bytes read from the source. Those up to `seen` were examined, those up to `passed` may be given to the demuxer,
  /// and those up to `given` have been.
  private var bytes: [UInt8] = []
  /// The buffer for reads of the source.
  private var chunk = [UInt8](repeating: 0, count: 8 << 10)
  private var given = 0
  private var passed = 0
  private var seen = 0
  /// The PID whose next PES packet releases the withheld bytes.
  private var heldPID: Int?
  private var lookahead = PESLookahead()
  private var hasEnded = false
  private var givenCount: Int64 = 0
  /// The value of `givenCount` when the demuxer began.
  private var demuxerBegin: Int64 = 0
  /// 188, or more with a time stamp or check bytes; 0 before it is known.
  private var packetSize = 0
  private var tables = ProgramTables()
  /// The number of bytes that precede the first packet of the source; nil until it is known.
  private var leadingCount: Int64?

  /// The maximum number of withheld bytes.
  private static let maximumHeldByteCount = 64 << 10
  /// The maximum number of bytes after the last packet that need not have been media.
  private static let paddingByteCount: Int64 = 4 << 10
  /// The number of bytes that are searched for the first packet.
  private static let searchedByteCount = TransportPacket.searchedByteCount

  init(_ base: any ByteSource) {
    self.base = base
    isSeekable = base.isSeekable
  }

  /// Returns a description of the bytes after the last packet, once; nil if there are none. Others between packets may
  /// have no media, such as the bytes before each segment of some streams.
  func takeDamage() -> String? { damage.take() }

  /// Sets the streams that are played; others may change freely. Before this call, these are the ones with
  /// frames.
  func watch(pids: Set<Int>) { tables.watched = pids }

  /// Continues after a change.
  func proceed() {
    guard isAtChange else { return }
    isAtChange = false
    let packets = tables.begin().flatMap(framed)
    bytes.replaceSubrange(..<given, with: packets)
    origin = givenCount - Int64(packets.count)
    demuxerBegin = givenCount
    (given, passed, seen) = (0, packets.count, packets.count)
    lookahead.reset()
    // The packets after the change have not been examined yet.
    look()
  }

  /// Returns the first payload bytes of the PES packet after the video packet at `position`, as the demuxer
  /// counts, of which the demuxer has returned `byteCount` bytes. Nil if they have not arrived yet, or the
  /// packet continues.
  func opening(after position: Int64, pid: Int, byteCount: Int) -> [UInt8]? {
    lookahead.opening(after: position, pid: pid, byteCount: byteCount)
  }

  /// Passes bytes through unexamined, while a demuxer searches the whole source for a position.
  func setPassive(_ isPassive: Bool) throws {
    self.isPassive = isPassive
    // Bytes that were read ahead must be available again.
    if given < bytes.count, isSeekable { try base.seek(to: givenCount) }
    forgetPlace()
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    if isPassive {
      let count = try base.read(into: buffer)
      givenCount += Int64(count)
      return count
    }
    while given == passed {
      if isAtChange { return 0 }
      if hasEnded {
        // Withheld bytes, and part of a packet.
        if packetSize > 0, TransportPacket.isBegun(by: bytes[seen...], size: packetSize) {
          endsInsidePacket = true
        }
        recordLoss()
        guard passed < bytes.count else { return 0 }
        release()
        passed = bytes.count
        seen = passed
        break
      }
      try readOn()
      look()
    }
    let count = min(buffer.count, passed - given)
    bytes.withUnsafeBytes {
      buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[given..<given + count]))
    }
    given += count
    givenCount += Int64(count)
    return count
  }

  func seek(to offset: Int64) throws {
    givenCount = offset + (leadingCount ?? 0)
    try base.seek(to: givenCount)
    forgetPlace()
  }

  // MARK: - Private

  private func forgetPlace() {
    bytes.removeAll()
    (given, passed, seen) = (0, 0, 0)
    heldPID = nil
    hasEnded = false
    endsInsidePacket = false
    isAtChange = false
    packetSize = 0
    lossStart = nil
    tables.forgetPackets()
    lookahead.reset()
  }

  /// Releases all examined bytes.
  private func release() {
    heldPID = nil
    passed = seen
  }

  private func readOn() throws {
    bytes.removeSubrange(..<given)
    passed -= given
    seen -= given
    given = 0
    let count = try chunk.withUnsafeMutableBytes { try base.read(into: $0) }
    bytes += chunk.prefix(count)
    if count == 0 { hasEnded = true }
  }

  /// Releases whole packets, up to one that completes the map of another program.
  private func look() {
    guard findFirstPacket() else { return }
    while seen < bytes.count {
      guard packetSize > 0 || findPacketSize() else { break }
      guard bytes.count - seen >= packetSize else { break }
      guard let start = packetStart else {
        // Synchronisation is lost.
        lossStart = seenPosition
        packetSize = 0
        seen += 1
        continue
      }
      let packet = bytes[start..<start + TransportPacket.byteCount]
      if tables.record(packet) {
        isAtChange = true
        release()
        // The packet belongs to the tables of the new program.
        bytes.removeSubrange(seen..<seen + packetSize)
        givenCount += Int64(packetSize)
        return
      }
      let completed = lookahead.record(packet, at: givenCount - demuxerBegin + Int64(seen - given))
      if heldPID == nil, let completed {
        passed = seen
        heldPID = completed
      }
      seen += packetSize
      if let heldPID, lookahead.knowsSuccessor(pid: heldPID) || seen - passed > Self.maximumHeldByteCount {
        release()
      }
    }
    if heldPID == nil { passed = seen }
  }

  /// Drops the bytes before the first packet of the source. Returns false if more bytes are needed.
  private func findFirstPacket() -> Bool {
    guard leadingCount == nil else { return true }
    let beginsWithPackets = TransportPacket.sizes.contains { size in
      TransportPacket.isRun(of: 2, from: size == 192 ? 4 : 0, size: size, in: bytes)
    }
    let run = beginsWithPackets ? nil : TransportPacket.run(in: bytes)
    guard beginsWithPackets || run != nil || hasEnded || bytes.count >= Self.searchedByteCount else {
      return false
    }
    let count = run?.start ?? 0
    bytes.removeSubrange(..<count)
    leadingCount = Int64(count)
    (origin, givenCount, demuxerBegin) = (Int64(count), Int64(count), Int64(count))
    return true
  }

  /// The position in the source of the byte at `seen`.
  private var seenPosition: Int64 { givenCount + Int64(seen - given) }

  /// Records the bytes after the last packet, if there are more of them than padding has.
  private func recordLoss() {
    guard let start = lossStart.take(), seenPosition - start > Self.paddingByteCount else { return }
    damage = "the bytes from byte \(start) on are no transport packets"
  }

  /// Returns a packet in the stream's packet size.
  private func framed(_ packet: [UInt8]) -> [UInt8] {
    let rest = Array(repeating: UInt8(0), count: packetSize - TransportPacket.byteCount)
    return packetSize == 192 ? rest + packet : packet + rest
  }

  /// The index of the first byte of the packet at `seen`; nil if there is no packet.
  private var packetStart: Int? {
    let start = seen + (packetSize == 192 ? 4 : 0)
    return bytes[start] == TransportPacket.syncByte ? start : nil
  }

  /// Returns false if more bytes are needed. Bytes outside packets are passed on.
  private func findPacketSize() -> Bool {
    while bytes.count - seen > 2 * 204 + 4 {
      // Skips nearly all bytes outside of packets.
      guard bytes[seen] == TransportPacket.syncByte || bytes[seen + 4] == TransportPacket.syncByte else {
        seen += 1
        continue
      }
      let size = TransportPacket.sizes.first { size in
        TransportPacket.isRun(of: 3, from: seen + (size == 192 ? 4 : 0), size: size, in: bytes)
      }
      if let size {
        packetSize = size
        lossStart = nil
        return true
      }
      seen += 1
    }
    if hasEnded { seen = bytes.count }
    return false
  }
}

/// The programs of an MPEG-TS stream: the PIDs and their codecs (ISO/IEC 13818-1 §2.4.4).
///
/// The first map of a program describes its streams. A later one that differs for a watched stream is a change.
/// So is another program's map, if the old program is no longer listed.
struct ProgramTables {
  /// The PIDs that are played; nil for those with frames.
  var watched: Set<Int>?

  /// The programs by the PID of their map.
  private var programs: [Int: Int] = [:]
  private var maps: [Int: [Int: Stream]] = [:]
  private var sections: [Int: Section] = [:]
  private var association: [[UInt8]] = []
  /// The state with which `begin` continues.
  private var change: (program: Int, map: [Int: Stream], packets: [[UInt8]])?

  private static let associationPID = 0
  /// The maximum number of programs, and of the packets of their association.
  private static let maximumCount = 256

  private struct Stream: Equatable {
    /// The same type for encrypted and clear samples, because libavformat continues across a change between the two.
    let type: UInt8
    /// The descriptors, for types that do not identify the codec.
    let descriptors: [UInt8]

    enum Kind { case video, audio, other }

    /// By `stream_type`: ISO/IEC 13818-1 table 2-34, ATSC A/53-3, and Apple's for encrypted samples.
    var kind: Kind {
      switch type {
      case 0x01, 0x02, 0x10, 0x1b, 0x1e...0x21, 0x24, 0x33, 0x42, 0xd1, 0xdb, 0xea: .video
      case 0x03, 0x04, 0x06, 0x0f, 0x11, 0x80...0x85, 0x87, 0xc1, 0xc2, 0xcf: .audio
      default: .other
      }
    }
  }

  /// A section that arrives packet by packet.
  private struct Section {
    var bytes: [UInt8] = []
    var packets: [[UInt8]] = []

    /// The size including the three bytes up to the length field; nil before it is known.
    var byteCount: Int? {
      bytes.count < 3 ? nil : 3 + (Int(bytes[1] & 0x0f) << 8 | Int(bytes[2]))
    }
  }

  /// Records a packet of 188 bytes. True if it completes the map of a program other than the watched one.
  mutating func record(_ packet: ArraySlice<UInt8>) -> Bool {
    let start = packet.startIndex
    let pid = Int(packet[start + 1] & 0x1f) << 8 | Int(packet[start + 2])
    guard pid == Self.associationPID || programs[pid] != nil else { return false }
    guard let section = section(with: Array(packet), pid: pid) else { return false }
    if pid == Self.associationPID {
      recordAssociation(section)
      return false
    }
    return recordMap(section)
  }

  /// Discards partial sections, because the next packet comes from another position.
  mutating func forgetPackets() { sections = [:] }

  /// Switches to the new program; returns the packets of its tables.
  mutating func begin() -> [[UInt8]] {
    guard let change = change.take() else { return [] }
    maps = [change.program: change.map]
    watched = nil
    return association + change.packets
  }

  // MARK: - Private

  /// Returns the section that a packet completes; nil if its checksum is wrong.
  private mutating func section(with packet: [UInt8], pid: Int) -> Section? {
    let (isDamaged, begins, isEncrypted) = (
      packet[1] & 0x80 != 0, packet[1] & 0x40 != 0, packet[3] & 0xc0 != 0
    )
    guard !isDamaged, !isEncrypted, packet[3] & 0x10 != 0 else { return nil }
    var payload = packet[4...]
    if packet[3] & 0x20 != 0 { payload = payload.dropFirst(1 + Int(packet[4])) }
    if begins {
      guard let pointer = payload.popFirst() else { return nil }
      payload = payload.dropFirst(Int(pointer))
      sections[pid] = Section()
    }
    guard var section = sections[pid], !payload.isEmpty else { return nil }
    section.bytes += payload
    section.packets.append(packet)
    guard let count = section.byteCount, section.bytes.count >= count else {
      sections[pid] = section
      return nil
    }
    sections[pid] = nil
    section.bytes.removeLast(section.bytes.count - count)
    let checksum = section.bytes.withUnsafeBufferPointer {
      av_crc(av_crc_get_table(AV_CRC_32_IEEE), .max, $0.baseAddress, $0.count)
    }
    // The remainder over a section and its checksum is 0.
    guard checksum == 0, count >= 12, section.bytes[5] & 1 != 0 else { return nil }
    return section
  }

  private mutating func recordAssociation(_ section: Section) {
    let bytes = section.bytes
    guard bytes[0] == 0 else { return }
    if bytes[6] == 0 {
      programs = [:]
      association = []
    }
    guard association.count + section.packets.count <= Self.maximumCount else { return }
    association += section.packets
    for start in stride(from: 8, to: bytes.count - 7, by: 4) {
      let program = Int(bytes[start]) << 8 | Int(bytes[start + 1])
      // 0 is the network information table.
      if program != 0 { programs[Int(bytes[start + 2] & 0x1f) << 8 | Int(bytes[start + 3])] = program }
    }
  }

  /// Returns true for a change.
  private mutating func recordMap(_ section: Section) -> Bool {
    let bytes = section.bytes
    guard bytes[0] == 2, bytes.count >= 16 else { return false }
    let program = Int(bytes[3]) << 8 | Int(bytes[4])
    let map = Self.streams(of: bytes)
    guard let old = maps[program] ?? maps.first(where: { !programs.values.contains($0.key) })?.value else {
      if maps.count < Self.maximumCount { maps[program] = map }
      return false
    }
    guard hasChanged(old, to: map) else { return false }
    change = (program, map, section.packets)
    return true
  }

  private static func streams(of bytes: [UInt8]) -> [Int: Stream] {
    var streams: [Int: Stream] = [:]
    let end = bytes.count - 4
    var start = 12 + (Int(bytes[10] & 0x0f) << 8 | Int(bytes[11]))
    while start + 5 <= end {
      let next = start + 5 + (Int(bytes[start + 3] & 0x0f) << 8 | Int(bytes[start + 4]))
      guard next <= end else { break }
      let type = bytes[start]
      // Private data is identified by its descriptors.
      let descriptors = type == 0x06 ? Array(bytes[start + 5..<next]) : []
      streams[Int(bytes[start + 1] & 0x1f) << 8 | Int(bytes[start + 2])] = Stream(
        type: SampleAESStreamType.clearTypes[type] ?? type, descriptors: descriptors)
      start = next
    }
    return streams
  }

  /// Returns true if a watched stream has changed, and the new program has one of its kind.
  private func hasChanged(_ old: [Int: Stream], to new: [Int: Stream]) -> Bool {
    old.contains { pid, stream in
      guard watched?.contains(pid) ?? (stream.kind == .video), new[pid] != stream else { return false }
      return new.values.contains { $0.kind == stream.kind }
    }
  }
}

/// The packets of MPEG-TS (ISO/IEC 13818-1 §2.4.3.2).
package enum TransportPacket {
  package static let syncByte: UInt8 = 0x47
  package static let byteCount = 188
  /// The packet sizes: plain; with a time stamp before each packet (BDAV); with check bytes after each packet
  /// (EN 300 429).
  package static let sizes = [188, 192, 204]
  /// The number of bytes to search in a stream that does not begin with a packet.
  package static let searchedByteCount = 128 << 10
  /// The number of packets in a row that identify a stream after other bytes.
  private static let runCount = 4

  /// Returns the first byte of the first packet in a run of four, and the size of these packets; nil if there
  /// is no such run. With time stamps, a packet begins with its time stamp.
  package static func run(in bytes: [UInt8]) -> (start: Int, size: Int)? {
    for sync in bytes.indices where bytes[sync] == syncByte {
      for size in sizes where isRun(of: runCount, from: sync, size: size, in: bytes) {
        let start = sync - (size == 192 ? 4 : 0)
        if start >= 0 { return (start, size) }
      }
    }
    return nil
  }

  /// Returns true if the bytes after the last whole packet begin another one, as far as they go. Other bytes at the end
  /// are no media.
  package static func isBegun(by rest: some RandomAccessCollection<UInt8>, size: Int) -> Bool {
    let sync = rest.dropFirst(size == 192 ? 4 : 0).first
    return !rest.isEmpty && sync ?? syncByte == syncByte
  }

  /// Returns the PID of a packet in which a PES packet of video begins (§2.4.3.7); nil for others.
  package static func beginningVideo(_ packet: ArraySlice<UInt8>) -> Int? {
    let packet = Array(packet)
    guard packet.count >= byteCount, packet[1] & 0x40 != 0, packet[3] & 0x10 != 0 else { return nil }
    let start = packet[3] & 0x20 != 0 ? 5 + Int(packet[4]) : 4
    let code = packet.dropFirst(start).prefix(4)
    guard code.starts(with: [0, 0, 1]), let stream = code.dropFirst(3).first, stream & 0xf0 == 0xe0 else {
      return nil
    }
    return Int(packet[1] & 0x1f) << 8 | Int(packet[2])
  }

  /// Returns true if packets of this size follow each other, the first one with its sync byte at `sync`.
  static func isRun(of count: Int, from sync: Int, size: Int, in bytes: [UInt8]) -> Bool {
    sync + (count - 1) * size < bytes.count
      && (0..<count).allSatisfy { bytes[sync + $0 * size] == syncByte }
  }
}
