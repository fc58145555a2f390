internal import ReelCore

/// Splits the byte stream of an elementary stream (ISO/IEC 14496-10 Annex B, ISO/IEC 23008-2 Annex B) into
/// access units. MPEG-TS carries it in PES packets that may contain several access units, or a part of one.
///
/// The rules are those of ISO/IEC 14496-10 §7.4.1.2.3 and ISO/IEC 23008-2 §7.4.2.4.4. A field is an access
/// unit of its own. An access unit has the timestamps of the PES packet in which it begins, if it is the
/// first to begin there.
struct AccessUnitSplitter {
  private struct Mark {
    /// Offset in `buffer`.
    var offset: Int
    var presentationTicks: Int64?
    var decodingTicks: Int64?
    var isCorrupt: Bool
    /// The byte position in the source.
    var position: Int64?
    /// True if the packet has a time that no other has, and no unit begins in it: its payload is damaged.
    var isNoise = false
  }

  private let codec: VideoCodec
  private let streamIndex: Int
  private var buffer: [UInt8] = []
  private var marks: [Mark] = []
  /// The number of marks of damaged packets.
  private var noiseCount = 0
  /// True if the packet that follows decides whether the last one is damaged.
  private var isUndecided = false
  /// The decoding time of the last packet that had one.
  private var lastTicks: Int64?
  /// The offset at which the scan for start codes continues.
  private var scanOffset = 0
  /// True if a slice of the unit being collected was seen; and the last macroblock address of H.264.
  private var hasSlice = false
  private var lastFirstMacroblock = 0

  /// A picture whose end is not found within this many bytes, or PES packets, is cut there.
  private static let maximumByteCount = 16 << 20
  private static let maximumPacketCount = 16 << 10
  private static let keptCapacity = 32 << 10

  init(codec: VideoCodec, streamIndex: Int) {
    self.codec = codec
    self.streamIndex = streamIndex
  }

  /// Adds the payload of a PES packet.
  mutating func append(_ packet: Packet) {
    decide(before: packet)
    let offset = buffer.count
    packet.withBytes { buffer.append(contentsOf: $0) }
    let mark = Mark(
      offset: offset, presentationTicks: packet.presentationTicks, decodingTicks: packet.decodingTicks,
      isCorrupt: packet.isCorrupt, position: packet.position)
    // The times of a packet that continues a unit are not in order.
    if packet.presentationTicks != nil, let ticks = packet.decodingTicks ?? packet.presentationTicks {
      // Some muxers split a start code between packets.
      let isNew = lastTicks.map { ticks > $0 } ?? true
      isUndecided =
        isNew && buffer.withUnsafeBytes { $0.firstStartCode(from: Swift.max(0, offset - 3)) == nil }
      lastTicks = ticks
    }
    marks.append(mark)
  }

  /// Decides whether the last packet is damaged. Some muxers give the end of a unit the times of the unit that begins in
  /// the next packet.
  private mutating func decide(before next: Packet?) {
    guard isUndecided, let last = marks.indices.last else { return }
    isUndecided = false
    let mark = marks[last]
    if let next, next.presentationTicks == mark.presentationTicks, next.decodingTicks == mark.decodingTicks {
      return
    }
    marks[last].isNoise = true
    noiseCount += 1
  }

  /// Returns the next complete access unit; nil if its end has not arrived yet.
  mutating func next() throws(ReelError) -> Packet? {
    guard let end = findEnd() else {
      let isTooLong = buffer.count > Self.maximumByteCount || marks.count > Self.maximumPacketCount
      return isTooLong ? try take(buffer.count) : nil
    }
    return try take(end)
  }

  /// Returns the rest of the stream at its end, as an access unit.
  mutating func flush() throws(ReelError) -> Packet? {
    decide(before: nil)
    if let packet = try next() { return packet }
    guard hasSlice || marks.first?.isNoise == true, !buffer.isEmpty else { return nil }
    return try take(buffer.count)
  }

  /// Returns the access unit collected so far, if `bytes`, which follow it in the stream, begin another
  /// access unit. This is the unit that `next()` would return once those bytes were appended. Nil if the unit
  /// continues or there are too few bytes to decide.
  mutating func next(followedBy bytes: [UInt8]) throws(ReelError) -> Packet? {
    guard hasSlice, !isUndecided, !buffer.isEmpty else { return nil }
    var ahead = AccessUnitSplitter(codec: codec, streamIndex: streamIndex)
    // A unit that begins at offset 0 does not end a previous one.
    let start = Swift.max(0, scanOffset - 1)
    ahead.buffer = buffer[start...] + bytes
    ahead.scanOffset = scanOffset - start
    ahead.hasSlice = true
    ahead.lastFirstMacroblock = lastFirstMacroblock
    guard let end = ahead.findEnd().map({ start + $0 }) else { return nil }
    // Zero bytes may precede the start code.
    guard end <= buffer.count || bytes.prefix(end - buffer.count).allSatisfy({ $0 == 0 }) else { return nil }
    hasSlice = false
    let packet = try take(Swift.min(end, buffer.count))
    scanOffset = 0
    return packet
  }

  // MARK: - Private

  /// Returns the offset at which the next access unit begins.
  private mutating func findEnd() -> Int? {
    let noise = noiseBoundary
    let end = findStart(before: noise ?? .max)
    guard end == nil, let noise else { return end }
    scanOffset = noise
    hasSlice = false
    return noise
  }

  /// The offset at which a damaged packet begins, or ends if the buffer begins with it. Damaged packets are units of their
  /// own, so that their frames are missed at their times.
  private var noiseBoundary: Int? {
    guard noiseCount > 0 else { return nil }
    if marks.first?.isNoise == true { return marks.dropFirst().first { $0.offset > 0 }?.offset }
    return marks.first { $0.isNoise && $0.offset > 0 }?.offset
  }

  private mutating func findStart(before limit: Int) -> Int? {
    buffer.withUnsafeBytes { bytes in
      while let start = bytes.firstStartCode(from: scanOffset), start < limit {
        // Checking a unit needs its header and the first four bytes of a slice header.
        guard start + 8 <= bytes.count else {
          scanOffset = start
          return nil
        }
        let unit = UnsafeRawBufferPointer(rebasing: bytes[(start + 3)...])
        if beginsAccessUnit(unit), start > 0 {
          // The scan continues here once the previous unit has been taken. A zero byte before the start code
          // stays with that unit, as its trailing zero.
          scanOffset = start
          hasSlice = false
          return start
        }
        scanOffset = start + 3
      }
      scanOffset = Swift.max(scanOffset, bytes.count - 2)
      return nil
    }
  }

  /// Returns true if this unit is the first of a new access unit. Also records slices.
  private mutating func beginsAccessUnit(_ unit: UnsafeRawBufferPointer) -> Bool {
    guard let header = NALUnitHeader(codec: codec, bytes: unit) else { return false }
    if header.precedesPicture { return hasSlice }
    guard header.isPictureSlice else { return false }
    let isFirst: Bool
    switch codec {
    case .h264:
      // Data partitions B and C carry a slice id where others carry a macroblock address.
      if header.type == 3 || header.type == 4 { return false }
      // first_mb_in_slice (ISO/IEC 14496-10 §7.3.3).
      // More bytes may not have arrived yet.
      var reader = BitReader(UnsafeRawBufferPointer(rebasing: unit.dropFirst().prefix(4)))
      let address = reader.exponentialGolomb()
      let macroblock = reader.hasFailed ? Int.max : Int(address)
      isFirst = macroblock <= lastFirstMacroblock
      if !(hasSlice && isFirst) { lastFirstMacroblock = macroblock }
    default:
      isFirst = unit[2] & 0x80 != 0
    }
    if hasSlice, isFirst { return true }
    hasSlice = true
    return false
  }

  private mutating func take(_ end: Int) throws(ReelError) -> Packet {
    let packet = try packet(end)
    if marks.last.map({ $0.offset < end }) ?? true { isUndecided = false }
    dropFirst(end)
    scanOffset = Swift.max(0, scanOffset - end)
    if buffer.isEmpty { hasSlice = false }
    lastFirstMacroblock = 0
    // Marks of PES packets that began inside the unit have been used or skipped. The mark of the packet in
    // which the rest begins stays, without timestamps if it was used.
    var rest = marks.filter { $0.offset >= end }
    // Some muxers split a start code between packets: the packet with its end counts.
    if let first = rest.first, first.offset <= end + 3 { rest[0].offset = end }
    if rest.first?.offset != end, !buffer.isEmpty {
      let passed = marks.last { $0.offset < end && $0.offset > 0 }
      let last = marks.last { $0.offset < end }
      // A PES packet that began within the unit, in which the next unit is the first to begin.
      rest.insert(
        Mark(
          offset: end, presentationTicks: passed?.presentationTicks, decodingTicks: passed?.decodingTicks,
          isCorrupt: passed?.isCorrupt ?? false, position: last?.position), at: 0)
    }
    for index in rest.indices { rest[index].offset -= end }
    marks = rest
    noiseCount = marks.count { $0.isNoise }
    return packet
  }

  /// Releases the capacity for a key frame together with it, because later pictures are small.
  private mutating func dropFirst(_ count: Int) {
    if buffer.count - count < count / 4, buffer.capacity > Self.keptCapacity {
      buffer = Array(buffer[count...])
    } else {
      buffer.removeFirst(count)
    }
  }

  private func packet(_ end: Int) throws(ReelError) -> Packet {
    let packet = try Packet()
    try packet.setBytes(copying: buffer[..<end], streamIndex: streamIndex)
    let isKey = packet.firstSlice(codec: codec, framing: .annexB)?.isRandomAccess ?? false
    let first = marks.first { $0.offset == 0 }
    packet.setTimestamps(
      presentationTicks: first?.presentationTicks,
      // A PES packet with one timestamp has it for both (ISO/IEC 13818-1 §2.4.3.7).
      decodingTicks: first?.decodingTicks ?? first?.presentationTicks, isKey: isKey,
      isCorrupt: marks.contains { $0.offset < end && $0.isCorrupt })
    packet.setPosition(first?.position)
    return packet
  }
}
