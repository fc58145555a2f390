/// Finds where video PES packets end in an MPEG-TS stream, and how the next one begins.
///
/// A PES packet usually ends with an access unit, but only the start of the next PES packet proves it. This reader sees
/// that start as soon as its transport packet arrives, while libavformat returns a PES packet only when it is complete.
///
/// Transport packets: ISO/IEC 13818-1 §2.4.3.2. PES packets: §2.4.3.6.
struct PESLookahead {
  /// A PES packet of video, from its first transport packet on.
  private struct Packet {
    /// The byte position of its first transport packet, as the demuxer counts.
    let position: Int64
    /// The PES header, until it is complete.
    var header: [UInt8] = []
    var isInPayload = false
    /// Payload bytes so far.
    var byteCount = 0
    /// Payload bytes according to `PES_packet_length`; nil if the length is not stated.
    var declaredByteCount: Int?
    /// The first bytes of the payload.
    var opening: [UInt8] = []

    /// True if the stated number of bytes has arrived.
    var isComplete: Bool { declaredByteCount.map { byteCount >= $0 } ?? false }

    mutating func append(_ bytes: ArraySlice<UInt8>, openingByteCount: Int) {
      var payload = bytes
      if !isInPayload {
        header += bytes
        guard header.count >= 9, header.count >= 9 + Int(header[8]) else { return }
        let headerByteCount = 9 + Int(header[8])
        let length = Int(header[4]) << 8 | Int(header[5])
        // The length counts the bytes after its field.
        if length > 0 { declaredByteCount = max(0, length - (headerByteCount - 6)) }
        payload = header[headerByteCount...]
        isInPayload = true
      }
      byteCount += payload.count
      opening += payload.prefix(max(0, openingByteCount - opening.count))
      if isInPayload { header = [] }
    }
  }

  private struct Pair {
    let pid: Int
    let ended: Packet
    var next: Packet
  }

  /// The packet being read, by PID.
  private var current: [Int: Packet] = [:]
  /// The latest completed packets, each with its successor.
  private var pairs: [Pair] = []

  /// Enough for a start code, zero bytes before it, and the beginning of a slice header.
  private static let openingByteCount = 32
  /// The demuxer lags behind by at most its buffer, so few pairs are needed.
  private static let maximumPairs = 64
  private static let maximumStreams = 64

  /// Discards everything, after a jump to another position in the stream.
  mutating func reset() { self = PESLookahead() }

  /// Records a transport packet of 188 bytes at `position`.
  ///
  /// Returns the PID if this completes a video PES packet whose length is stated. A demuxer returns such a packet at
  /// once, before anything is known about the next one.
  mutating func record(_ packet: ArraySlice<UInt8>, at position: Int64) -> Int? {
    let start = packet.startIndex
    let pid = Int(packet[start + 1] & 0x1f) << 8 | Int(packet[start + 2])
    let begins = packet[start + 1] & 0x40 != 0
    guard begins || current[pid] != nil, packet[start + 3] & 0x10 != 0 else { return nil }
    var payload = packet.dropFirst(4)
    if packet[start + 3] & 0x20 != 0 { payload = payload.dropFirst(1 + Int(packet[start + 4])) }
    if begins, !begin(payload, pid: pid, at: position) { return nil }
    return append(payload, pid: pid)
  }

  /// Returns the first payload bytes of the PES packet after the video packet at `position`, of which the
  /// demuxer has returned `byteCount` bytes. Nil if they have not arrived yet, or the packet has more bytes
  /// than that.
  func opening(after position: Int64, pid: Int, byteCount: Int) -> [UInt8]? {
    guard let pair = pairs.last(where: { $0.pid == pid && $0.ended.position == position }),
      pair.ended.byteCount == byteCount, pair.next.isInPayload
    else { return nil }
    return pair.next.opening
  }

  /// Returns true if enough bytes of the packet after the last complete one of `pid` have arrived.
  func knowsSuccessor(pid: Int) -> Bool {
    guard let packet = current[pid] else { return true }
    return !packet.isComplete && packet.opening.count >= Self.openingByteCount / 2
  }

  // MARK: - Private

  /// Returns false if the payload does not begin a video packet.
  private mutating func begin(_ payload: ArraySlice<UInt8>, pid: Int, at position: Int64) -> Bool {
    let ended = current.removeValue(forKey: pid)
    let bytes = Array(payload.prefix(4))
    guard bytes.count == 4, bytes[0] == 0, bytes[1] == 0, bytes[2] == 1,
      // Video streams, and those with an extended id (ISO/IEC 13818-1 table 2-22).
      bytes[3] & 0xf0 == 0xe0 || bytes[3] == 0xfd, current.count < Self.maximumStreams
    else { return false }
    let next = Packet(position: position)
    current[pid] = next
    if let ended, ended.isInPayload {
      if pairs.count >= Self.maximumPairs { pairs.removeFirst() }
      pairs.append(Pair(pid: pid, ended: ended, next: next))
    }
    return true
  }

  private mutating func append(_ payload: ArraySlice<UInt8>, pid: Int) -> Int? {
    guard var packet = current[pid] else { return nil }
    let wasComplete = packet.isComplete
    packet.append(payload, openingByteCount: Self.openingByteCount)
    current[pid] = packet
    if let index = pairs.lastIndex(where: { $0.pid == pid && $0.next.position == packet.position }),
      pairs[index].next.opening.count < Self.openingByteCount
    {
      pairs[index].next = packet
    }
    return packet.isComplete && !wasComplete ? pid : nil
  }
}
