internal import CFFmpeg

/// The programs of an MPEG-TS stream: which PIDs have which codecs (ISO/IEC 13818-1 §2.4.4).
///
/// The first map of a program describes its streams. A later one that differs for a watched stream is a change.
/// So is another program's map, if the old program is no longer listed.
struct ProgramTables {
  /// The PIDs that are played; nil for those with frames.
  var watched: Set<Int>?

  /// By the PID of its map.
  private var programs: [Int: Int] = [:]
  private var maps: [Int: [Int: Stream]] = [:]
  private var sections: [Int: Section] = [:]
  private var association: [[UInt8]] = []
  /// The state with which `begin` continues.
  private var change: (program: Int, map: [Int: Stream], packets: [[UInt8]])?

  private static let associationPID = 0

  /// One elementary stream.
  private struct Stream: Equatable {
    /// The same type for encrypted and clear samples, because libavformat continues across a change between the two.
    let type: UInt8
    /// Of a type that says nothing of the codec.
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

  /// A section that comes packet by packet.
  private struct Section {
    var bytes: [UInt8] = []
    var packets: [[UInt8]] = []

    /// With its three bytes before the length; nil before it is known.
    var byteCount: Int? {
      bytes.count < 3 ? nil : 3 + (Int(bytes[1] & 0x0f) << 8 | Int(bytes[2]))
    }
  }

  /// Notes a packet of 188 bytes. True if it completes the map of another program than the one that is watched.
  mutating func note(_ packet: ArraySlice<UInt8>) -> Bool {
    let start = packet.startIndex
    let pid = Int(packet[start + 1] & 0x1f) << 8 | Int(packet[start + 2])
    guard pid == Self.associationPID || programs[pid] != nil else { return false }
    guard let section = section(with: Array(packet), pid: pid) else { return false }
    if pid == Self.associationPID {
      noteAssociation(section)
      return false
    }
    return noteMap(section)
  }

  /// The place in the stream is another.
  mutating func forgetPackets() { sections = [:] }

  /// Goes over to the program that has come; gives the packets of its tables.
  mutating func begin() -> [[UInt8]] {
    guard let change = change.take() else { return [] }
    maps = [change.program: change.map]
    watched = nil
    return association + change.packets
  }

  // MARK: - Private

  /// The section that a packet completes; nil unless its checksum is correct.
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
    guard var section = sections[pid] else { return nil }
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

  private mutating func noteAssociation(_ section: Section) {
    let bytes = section.bytes
    guard bytes[0] == 0 else { return }
    if bytes[6] == 0 {
      programs = [:]
      association = []
    }
    association += section.packets
    for start in stride(from: 8, to: bytes.count - 7, by: 4) {
      let program = Int(bytes[start]) << 8 | Int(bytes[start + 1])
      // 0 is the network information table.
      if program != 0 { programs[Int(bytes[start + 2] & 0x1f) << 8 | Int(bytes[start + 3])] = program }
    }
  }

  /// True for a change.
  private mutating func noteMap(_ section: Section) -> Bool {
    let bytes = section.bytes
    guard bytes[0] == 2, bytes.count >= 16 else { return false }
    let program = Int(bytes[3]) << 8 | Int(bytes[4])
    let map = Self.streams(of: bytes)
    guard let old = maps[program] ?? maps.first(where: { !programs.values.contains($0.key) })?.value else {
      maps[program] = map
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

  /// True if a watched stream is no longer what it was, and there is one of its kind.
  private func hasChanged(_ old: [Int: Stream], to new: [Int: Stream]) -> Bool {
    old.contains { pid, stream in
      guard watched?.contains(pid) ?? (stream.kind == .video), new[pid] != stream else { return false }
      return new.values.contains { $0.kind == stream.kind }
    }
  }
}
