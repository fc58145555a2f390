internal import CFFmpeg
internal import ReelCore

/// An MPEG-TS stream up to a change of its program: a played stream continues with another codec or PID.
///
/// libavformat keeps the first codec of a PID (libavformat/mpegts.c, pmt_cb) and does not follow a program to
/// other PIDs. So the bytes end before the new program, which makes the demuxer return what it holds of the old
/// one. After `proceed()` they continue with the tables of the new one, for another demuxer.
///
/// It also knows how the PES packet after a video packet begins before the demuxer has read that far
/// (`opening(after:)`). For this it withholds the end of a PES packet with a stated length until the next one
/// of its stream has begun.
///
/// The demuxer does not get bytes that precede the first packet of a source.
///
/// Program association and program map sections are those of ISO/IEC 13818-1 §2.4.4; a section with a wrong
/// checksum is no change.
final class ProgramSource: ByteSource {
  var byteCount: Int64? { base.byteCount.map { max(0, $0 - (leadingCount ?? 0)) } }
  let isSeekable: Bool
  /// The place in the source of what would be the demuxer's first byte, had it read the source without a change.
  private(set) var origin: Int64 = 0
  /// The program changes after the bytes that were read.
  private(set) var isAtChange = false
  /// The source ended, and its last transport packet is not whole.
  private(set) var endsInsidePacket = false

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
  /// The PID for whose next PES packet bytes are withheld.
  private var heldPID: Int?
  private var lookahead = PESLookahead()
  private var hasEnded = false
  private var givenCount: Int64 = 0
  /// The value of `givenCount` when the demuxer began.
  private var demuxerBegin: Int64 = 0
  /// 188, or with a time stamp or check bytes; 0 before it is known.
  private var packetSize = 0
  private var tables = ProgramTables()
  /// The number of bytes that precede the first packet of the source; nil until it is known.
  private var leadingCount: Int64?

  /// At most this many bytes are withheld.
  private static let maximumHeldByteCount = 64 << 10
  /// The number of bytes that are searched for the first packet.
  private static let searchedByteCount = TransportPacket.searchedByteCount

  init(_ base: any ByteSource) {
    self.base = base
    isSeekable = base.isSeekable
  }

  /// The streams that are played: others may change as they like. Before it is called, these are the ones with frames.
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

  /// The first payload bytes of the PES packet after the video packet at `position`, as the demuxer counts, of which
  /// the demuxer has returned `byteCount` bytes. Nil if they have not arrived yet, or the packet continues.
  func opening(after position: Int64, pid: Int, byteCount: Int) -> [UInt8]? {
    lookahead.opening(after: position, pid: pid, byteCount: byteCount)
  }

  /// Lets bytes pass unseen, while a demuxer looks for a place all over the source.
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
        if packetSize > 0, seen < bytes.count { endsInsidePacket = true }
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
    tables.forgetPackets()
    lookahead.reset()
  }

  /// Lets all examined bytes pass.
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

  /// Lets whole packets pass, up to one that completes the map of another program.
  private func look() {
    guard findFirstPacket() else { return }
    while seen < bytes.count {
      guard packetSize > 0 || findPacketSize() else { break }
      guard bytes.count - seen >= packetSize else { break }
      guard let start = packetStart else {
        // Synchronization is lost.
        packetSize = 0
        seen += 1
        continue
      }
      let packet = bytes[start..<start + TransportPacket.byteCount]
      if tables.note(packet) {
        isAtChange = true
        release()
        // The packet belongs to the tables of the new program.
        bytes.removeSubrange(seen..<seen + packetSize)
        givenCount += Int64(packetSize)
        return
      }
      let completed = lookahead.note(packet, at: givenCount - demuxerBegin + Int64(seen - given))
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

  /// Drops what precedes the first packet of the source. Returns false if more bytes are needed.
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

  /// A packet as the stream has them.
  private func framed(_ packet: [UInt8]) -> [UInt8] {
    let rest = Array(repeating: UInt8(0), count: packetSize - TransportPacket.byteCount)
    return packetSize == 192 ? rest + packet : packet + rest
  }

  /// The index of the first byte of the packet at `seen`; nil if there is no packet.
  private var packetStart: Int? {
    let start = seen + (packetSize == 192 ? 4 : 0)
    return bytes[start] == TransportPacket.syncByte ? start : nil
  }

  /// Returns false if more bytes are needed. Bytes outside of packets are passed on.
  private func findPacketSize() -> Bool {
    while bytes.count - seen > 2 * 204 + 4 {
      // Skips nearly all bytes outside of packets.
      guard bytes[seen] == TransportPacket.syncByte || bytes[seen + 4] == TransportPacket.syncByte else {
        seen += 1
        continue
      }
      let size = TransportPacket.sizes.first { size in
        let start = seen + (size == 192 ? 4 : 0)
        return (0...2).allSatisfy { bytes[start + $0 * size] == TransportPacket.syncByte }
      }
      if let size {
        packetSize = size
        return true
      }
      seen += 1
    }
    if hasEnded { seen = bytes.count }
    return false
  }
}
