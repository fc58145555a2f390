internal import CFFmpeg
package import ReelCore

/// Splits the PES packets of one audio stream of MPEG-TS into audio frames, one packet each, for
/// `AudioDecoder`.
///
/// A PES packet may contain several frames, and a part of one at either end. Its timestamp is that of the first
/// frame that begins in it (ISO/IEC 13818-1 §2.4.3.7). The frames after that one follow without a gap: their
/// times are counted in samples, exactly. Other bytes between frames are skipped, and so are incomplete frames.
/// If the beginning of a frame is not known, at the start and after damage, a header counts only if another one
/// follows at the position that it states, or the end of a PES packet.
///
/// Demuxers of other containers deliver whole frames. Packets of a codec that can't be split are passed on
/// unchanged.
///
/// Confined to one thread at a time.
package final class AudioFrameSplitter {
  /// The beginning of a PES packet.
  private struct Mark {
    /// Offset in `buffer`.
    var offset: Int
    /// Of the first frame that begins here; nil if there is none, or once it was used.
    var presentationTicks: Int64?
    var isCorrupt: Bool
    /// The byte position in the source.
    var position: Int64?
  }

  /// A frame, with those that depend on it.
  private struct Unit {
    var start: Int
    var end: Int
    var header: AudioFrameHeader
  }

  private enum Search {
    case unit(Unit)
    case needsInput
  }

  private let codec: AudioCodec
  private let streamIndex: Int
  private let canSplit: Bool
  private var buffer: [UInt8] = []
  /// How much of `buffer` has been used.
  private var offset = 0
  private var marks: [Mark] = []
  /// A frame has ended at `offset`.
  private var isSynchronized = false
  private var clock: AudioClock
  private var whole: [SharedPacket] = []

  /// - Parameter timeBase: of the packets' timestamps, in seconds per tick.
  package init(codec: AudioCodec, streamIndex: Int, timeBase: Rational) {
    self.codec = codec
    self.streamIndex = streamIndex
    canSplit = AudioFrameHeader.isKnown(for: codec)
    clock = AudioClock(timeBase: timeBase)
  }

  /// Adds a PES packet.
  package func append(_ packet: consuming Packet) {
    guard canSplit else {
      whole.append(SharedPacket(packet))
      return
    }
    buffer.removeFirst(offset)
    for index in marks.indices { marks[index].offset -= offset }
    offset = 0
    marks.append(
      Mark(
        offset: buffer.count, presentationTicks: packet.presentationTicks, isCorrupt: packet.isCorrupt,
        position: packet.position))
    packet.withBytes { buffer.append(contentsOf: $0) }
  }

  /// The next whole frame; nil if its end is not there yet.
  package func next() throws(ReelError) -> Packet? { try next(isAtEnd: false) }

  /// The frames that are left at the end of the stream, one a call; nil when there are no more.
  package func flush() throws(ReelError) -> Packet? { try next(isAtEnd: true) }

  /// Forgets everything: the next PES packet comes from another place.
  package func reset() {
    buffer = []
    offset = 0
    marks = []
    isSynchronized = false
    clock.reset()
    whole = []
  }

  // MARK: - Private

  private func next(isAtEnd: Bool) throws(ReelError) -> Packet? {
    guard canSplit else { return whole.isEmpty ? nil : try whole.removeFirst().packet.clone() }
    guard case .unit(let unit) = find(isAtEnd: isAtEnd) else { return nil }
    return try take(unit)
  }

  /// Finds the next frame at or behind `offset`, and moves `offset` over what is none.
  private func find(isAtEnd: Bool) -> Search {
    buffer.withUnsafeBytes { bytes in
      while offset + AudioFrameHeader.byteCount <= bytes.count {
        guard let header = header(in: bytes, at: offset) else {
          isSynchronized = false
          offset += 1
          continue
        }
        let end = offset + header.byteCount
        if !isSynchronized {
          switch confirm(header, end: end, in: bytes, isAtEnd: isAtEnd) {
          case true?: isSynchronized = true
          case nil: return .needsInput
          case false?:
            offset += 1
            continue
          }
        }
        guard end <= bytes.count else {
          // A damaged length reaches too far: at the end, it may span whole frames.
          guard isAtEnd else { return .needsInput }
          isSynchronized = false
          offset += 1
          continue
        }
        guard header.role == .independent else {
          offset = end
          continue
        }
        guard let whole = endWithDependents(from: end, in: bytes, isAtEnd: isAtEnd) else {
          return .needsInput
        }
        return .unit(Unit(start: offset, end: whole, header: header))
      }
      return .needsInput
    }
  }

  /// Whether a header is confirmed by the bytes after its frame; nil if they have not arrived yet.
  private func confirm(
    _ header: AudioFrameHeader, end: Int, in bytes: UnsafeRawBufferPointer, isAtEnd: Bool
  ) -> Bool? {
    if end == bytes.count { return true }
    if end + AudioFrameHeader.byteCount <= bytes.count {
      return self.header(in: bytes, at: end)?.mayFollow(header) ?? false
    }
    return isAtEnd ? end < bytes.count : nil
  }

  /// The end of the frames that depend on one that ends at `end`; nil if they have not arrived yet.
  private func endWithDependents(
    from end: Int, in bytes: UnsafeRawBufferPointer, isAtEnd: Bool
  ) -> Int? {
    guard codec == .eac3 else { return end }
    var end = end
    while true {
      guard end + AudioFrameHeader.byteCount <= bytes.count else { return isAtEnd ? end : nil }
      guard let next = header(in: bytes, at: end), next.role == .dependent else { return end }
      guard end + next.byteCount <= bytes.count else { return isAtEnd ? end : nil }
      end += next.byteCount
    }
  }

  private func header(in bytes: UnsafeRawBufferPointer, at offset: Int) -> AudioFrameHeader? {
    AudioFrameHeader(codec: codec, bytes: UnsafeRawBufferPointer(rebasing: bytes[offset...]))
  }

  private func take(_ unit: Unit) throws(ReelError) -> Packet {
    offset = unit.end
    // The PES packet in which the frame begins. Marks before it are no longer needed.
    let current = marks.lastIndex { $0.offset <= unit.start } ?? marks.startIndex
    marks.removeFirst(current)
    if let ticks = marks.first?.presentationTicks {
      clock.set(ticks)
      marks[0].presentationTicks = nil
    }
    let packet = try Packet()
    let start = unit.start + unit.header.prefixByteCount
    try packet.setBytes(copying: buffer[start..<unit.end], streamIndex: streamIndex)
    let ticks = clock.ticks
    packet.setTimestamps(
      presentationTicks: ticks, decodingTicks: ticks, isKey: true,
      isCorrupt: marks.contains { $0.offset < unit.end && $0.isCorrupt })
    packet.setPosition(marks.first?.position)
    clock.advance(sampleCount: unit.header.sampleCount, sampleRate: unit.header.sampleRate)
    if let ticks, let end = clock.ticks { packet.pointer.pointee.duration = max(0, end &- ticks) }
    return packet
  }
}
