internal import CFFmpeg
internal import CFFmpegShims
internal import ReelCore

/// One compressed access unit of one stream.
///
/// Ownership: owns its `AVPacket`, which holds a reference to the bytes, and frees it at the end. FFmpeg counts the
/// references to the bytes: a decoder may hold one for longer.
package final class Packet: @unchecked Sendable {
  // Sendable: the thread that reads a source makes a packet and changes it (times, decryption) before handing it out.
  // From then on nobody writes to it, with one exception: the decoder that it is sent to tags it
  // (`reel_codec_tag_packet`), and only that decoder reads the tag.
  let pointer: UnsafeMutablePointer<AVPacket>
  /// True if the bytes were encrypted and have been decrypted.
  var isDecrypted = false
  /// True if the container states a time for bytes in which no frame begins. A decoder of audio rejects it.
  package internal(set) var isNoise = false
  /// True for a field of H.264 without the other field of its frame.
  var isField = false

  /// Creates an empty packet, to be filled by a demuxer.
  init() throws(ReelError) {
    guard let pointer = av_packet_alloc() else { throw ReelError(.internalFault, "out of memory") }
    self.pointer = pointer
  }

  deinit {
    var pointer: UnsafeMutablePointer<AVPacket>? = pointer
    av_packet_free(&pointer)
  }

  package var streamIndex: Int { Int(pointer.pointee.stream_index) }

  package var byteCount: Int { Int(pointer.pointee.size) }

  /// Presentation time in ticks of the stream's time base; nil if the container has none.
  package var presentationTicks: Int64? { Self.known(pointer.pointee.pts) }

  /// Decoding time in ticks of the stream's time base; nil if the container has none.
  package var decodingTicks: Int64? { Self.known(pointer.pointee.dts) }

  /// The duration in ticks of the stream's time base; 0 if unknown.
  package var durationTicks: Int64 { pointer.pointee.duration }

  /// The position of the packet in the source's bytes; nil if the demuxer does not know it.
  package var position: Int64? { pointer.pointee.pos < 0 ? nil : pointer.pointee.pos }

  /// True if decoding can start here, according to the container.
  package var isKey: Bool { pointer.pointee.flags & AV_PKT_FLAG_KEY != 0 }

  /// True if the frame must be decoded but not shown, because an edit list excludes it.
  package var isDiscarded: Bool { pointer.pointee.flags & AV_PKT_FLAG_DISCARD != 0 }

  /// True if the demuxer knows that bytes are missing or wrong.
  package var isCorrupt: Bool { pointer.pointee.flags & AV_PKT_FLAG_CORRUPT != 0 }

  /// Returns the ticks from this packet to the next one; nil if the container has no times.
  func distance(to next: Packet) -> Int64? {
    guard let own = decodingTicks ?? presentationTicks,
      let others = next.decodingTicks ?? next.presentationTicks
    else { return nil }
    return others &- own
  }

  /// True if the samples are encrypted (ISO/IEC 23001-7), and there is no key.
  package var isEncrypted: Bool { reel_packet_is_encrypted(pointer) }

  /// Calls `body` with the compressed bytes, which are valid during the call.
  package func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(start: pointer.pointee.data, count: byteCount))
  }

  /// Hashes the decoder's input: everything except the times.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(pointer.pointee.flags)
    for index in 0..<Int(pointer.pointee.side_data_elems) {
      let data = pointer.pointee.side_data[index]
      hasher.combine(data.type.rawValue)
      hasher.combine(bytes: UnsafeRawBufferPointer(start: data.data, count: Int(data.size)))
    }
    hasher.combine(byteCount)
    withBytes { hasher.combine(bytes: $0) }
  }

  // MARK: Before the packet is handed out

  /// Makes the timestamps `ticks` later.
  package func move(by ticks: Int64) {
    if let own = presentationTicks { pointer.pointee.pts = own &+ ticks }
    if let own = decodingTicks { pointer.pointee.dts = own &+ ticks }
  }

  /// Marks the frame as one that is decoded but not shown.
  func discard() { pointer.pointee.flags |= AV_PKT_FLAG_DISCARD }

  /// Removes the mark that says how many audio samples to drop before those of this packet
  /// (`AV_PKT_DATA_SKIP_SAMPLES`).
  func keepAllSamples() {
    var size = 0
    guard let data = av_packet_get_side_data(pointer, AV_PKT_DATA_SKIP_SAMPLES, &size), size >= 4 else {
      return
    }
    if pointer.pointee.side_data_elems == 1 {
      av_packet_free_side_data(pointer)
    } else {
      UnsafeMutableRawBufferPointer(start: data, count: 4).initializeMemory(as: UInt8.self, repeating: 0)
    }
  }

  package func setPresentationTicks(_ ticks: Int64?) { pointer.pointee.pts = ticks ?? reel_nopts() }

  /// Stores the bytes in the memory account of the calling thread, if it has one.
  func store() { reel_packet_store(pointer) }

  /// Calls `body` with the compressed bytes so that it can change them.
  func withMutableBytes(
    _ body: (UnsafeMutableRawBufferPointer) throws(ReelError) -> Void
  ) throws(ReelError) {
    guard av_packet_make_writable(pointer) == 0 else { throw ReelError(.internalFault, "out of memory") }
    try body(UnsafeMutableRawBufferPointer(start: pointer.pointee.data, count: byteCount))
  }

  /// Replaces the compressed bytes with at most as many.
  func replaceBytes(with bytes: [UInt8]) throws(ReelError) {
    guard bytes.count <= byteCount, av_packet_make_writable(pointer) == 0 else {
      throw ReelError(.internalFault, "out of memory")
    }
    copy(bytes[...])
    av_shrink_packet(pointer, Int32(bytes.count))
  }

  func setPosition(_ position: Int64?) { pointer.pointee.pos = position ?? -1 }

  /// Gives an empty packet a copy of `bytes`, padded as decoders require.
  func setBytes(copying bytes: ArraySlice<UInt8>, streamIndex: Int) throws(ReelError) {
    guard let size = Int32(exactly: bytes.count), av_new_packet(pointer, size) == 0 else {
      throw ReelError(.internalFault, "out of memory")
    }
    copy(bytes)
    pointer.pointee.stream_index = Int32(clamping: streamIndex)
  }

  func setTimestamps(presentationTicks: Int64?, decodingTicks: Int64?, isKey: Bool, isCorrupt: Bool) {
    pointer.pointee.pts = presentationTicks ?? reel_nopts()
    pointer.pointee.dts = decodingTicks ?? reel_nopts()
    if isKey { pointer.pointee.flags |= AV_PKT_FLAG_KEY }
    if isCorrupt { pointer.pointee.flags |= AV_PKT_FLAG_CORRUPT }
  }

  // MARK: - Internal

  /// The codec configuration from this packet on (`AV_PKT_DATA_NEW_EXTRADATA`); nil for most packets.
  var newExtradata: [UInt8]? {
    var size = 0
    guard let data = av_packet_get_side_data(pointer, AV_PKT_DATA_NEW_EXTRADATA, &size) else { return nil }
    return Array(UnsafeRawBufferPointer(start: data, count: size))
  }

  /// Returns a copy of the packet with `bytes` prepended.
  func prefixed(by bytes: [UInt8]) throws(ReelError) -> Packet {
    let made = try copy(byteCount: bytes.count + byteCount)
    bytes.withUnsafeBytes { bytes in withBytes { made.fill(with: [bytes, $0]) } }
    return made
  }

  /// Returns a copy of the packet with the bytes of the following one appended. It lasts as long as both.
  func appending(_ next: Packet) throws(ReelError) -> Packet {
    let made = try copy(byteCount: byteCount + next.byteCount)
    withBytes { own in next.withBytes { made.fill(with: [own, $0]) } }
    made.pointer.pointee.duration = duration(with: next)
    if next.isCorrupt { made.pointer.pointee.flags |= AV_PKT_FLAG_CORRUPT }
    return made
  }

  func unmarkKey() { pointer.pointee.flags &= ~AV_PKT_FLAG_KEY }

  // MARK: - Private

  /// Returns a packet with the properties of this one, and with room for so many bytes.
  private func copy(byteCount: Int) throws(ReelError) -> Packet {
    let made = try Packet()
    made.isDecrypted = isDecrypted
    guard let size = Int32(exactly: byteCount), av_new_packet(made.pointer, size) == 0,
      av_packet_copy_props(made.pointer, pointer) == 0
    else { throw ReelError(.internalFault, "out of memory") }
    return made
  }

  /// Sets the bytes of a new packet, which has room for all parts.
  private func fill(with parts: [UnsafeRawBufferPointer]) {
    guard let data = pointer.pointee.data else { return }
    var target = UnsafeMutableRawBufferPointer(start: data, count: byteCount)
    for part in parts {
      target.copyMemory(from: part)
      target = UnsafeMutableRawBufferPointer(rebasing: target[part.count...])
    }
  }

  /// The duration of this packet and the next one; 0 if unknown. Some containers state the duration of both for each.
  private func duration(with next: Packet) -> Int64 {
    let (own, others) = (durationTicks, next.durationTicks)
    guard own > 0, others > 0 else { return 0 }
    let isOfBoth = distance(to: next).map { $0 > 0 && own - own / 3 > $0 } ?? false
    return isOfBoth ? own : own &+ others
  }

  /// Copies bytes to the beginning of the packet's own, which must be at least as many.
  private func copy(_ bytes: ArraySlice<UInt8>) {
    bytes.withUnsafeBytes { bytes in
      if let base = bytes.baseAddress, let data = pointer.pointee.data {
        UnsafeMutableRawPointer(data).copyMemory(from: base, byteCount: bytes.count)
      }
    }
  }

  private static func known(_ ticks: Int64) -> Int64? { ticks == reel_nopts() ? nil : ticks }
}
