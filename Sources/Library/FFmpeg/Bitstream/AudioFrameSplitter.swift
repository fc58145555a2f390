internal import CFFmpeg
package import ReelCore

/// Splits the PES packets of one audio stream of MPEG-TS into audio frames, one packet each, for
/// `AudioDecoder`.
///
/// A PES packet may contain several frames, and a part of one at either end. Its timestamp is that of the first
/// frame that begins in it (ISO/IEC 13818-1 §2.4.3.7). The frames after that one follow without a gap: their
/// times are counted in samples, exactly. Other bytes between frames are skipped, and so are incomplete frames. A PES
/// packet with a time in which no frame begins is damaged: a packet that is marked as noise stands for it.
/// If the beginning of a frame is not known, at the start and after damage, a header counts only if the
/// position at which it says its frame ends has another header, or is the end of a PES packet.
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
    /// The time of the first frame that begins here; nil if there is none, or it was used.
    var presentationTicks: Int64?
    var isCorrupt: Bool
    /// The byte position in the source.
    var position: Int64?
  }

  /// A frame, with its dependent frames.
  private struct Unit {
    var start: Int
    var end: Int
    var header: AudioFrameHeader
  }

  /// The maximum number of frames that depend on one (ETSI TS 102 366 §E.1.3.1.2: eight substreams).
  private static let dependentLimit = 8

  private let codec: AudioCodec
  private let streamIndex: Int
  private let canSplit: Bool
  private var buffer: [UInt8] = []
  /// The number of bytes of `buffer` that have been used.
  private var offset = 0
  private var marks: [Mark] = []
  /// True if a frame has ended at `offset`.
  private var isSynchronized = false
  /// True if the bytes are one sample of MP4, whose frames follow each other from its beginning.
  private var isSample = false
  /// The offset from which bytes were skipped, up to `offset`; nil after a frame.
  private var skipStart: Int?
  /// The time of the last PES packet, and the time between it and the one before, in ticks.
  private var lastTicks: Int64?
  private var packetDuration: Int64 = 0
  private var clock: AudioClock
  private var whole: [Packet] = []

  /// - Parameter timeBase: The time base of the packets' timestamps, in seconds per tick.
  package init(codec: AudioCodec, streamIndex: Int, timeBase: Rational) {
    self.codec = codec
    self.streamIndex = streamIndex
    canSplit = AudioFrameHeader.isKnown(for: codec)
    clock = AudioClock(timeBase: timeBase)
  }

  /// Adds a PES packet.
  package func append(_ packet: Packet) {
    guard canSplit else {
      whole.append(packet)
      return
    }
    buffer.removeFirst(offset)
    for index in marks.indices { marks[index].offset -= offset }
    skipStart = skipStart.map { $0 - offset }
    offset = 0
    // Without any frame, none would be removed by `take`.
    if let current = marks.lastIndex(where: { $0.offset <= 0 }) { marks.removeFirst(current) }
    if let ticks = packet.presentationTicks {
      if let last = lastTicks, ticks > last { packetDuration = ticks - last }
      lastTicks = ticks
    }
    marks.append(
      Mark(
        offset: buffer.count, presentationTicks: packet.presentationTicks, isCorrupt: packet.isCorrupt,
        position: packet.position))
    packet.withBytes { buffer.append(contentsOf: $0) }
  }

  /// Returns the next complete frame; nil if its end has not arrived yet.
  package func next() throws(ReelError) -> Packet? { try next(isAtEnd: false) }

  /// Returns the remaining frames at the end of the stream, one per call; nil when there are no more.
  package func flush() throws(ReelError) -> Packet? { try next(isAtEnd: true) }

  /// Discards everything, because the next PES packet comes from another position.
  package func reset() {
    buffer = []
    offset = 0
    marks = []
    isSynchronized = false
    skipStart = nil
    lastTicks = nil
    clock.reset()
    whole = []
  }

  /// Returns the frames of a sample, which may have several of E-AC-3 (ETSI TS 102 366 §F.3), with the durations that their
  /// headers state; the sample itself if it has no header.
  ///
  /// - Parameter codec: AC-3, E-AC-3 or Opus.
  static func frames(of packet: Packet, codec: AudioCodec, timeBase: Rational) throws(ReelError) -> [Packet] {
    if codec == .opus {
      let count = packet.withBytes { AudioFrameHeader.opusSampleCount($0) }
      var clock = AudioClock(timeBase: timeBase)
      clock.set(packet.presentationTicks ?? 0)
      clock.advance(sampleCount: count ?? 0, sampleRate: 48_000)
      let end = clock.ticks ?? 0
      packet.pointer.pointee.duration = max(packet.durationTicks, end &- (packet.presentationTicks ?? 0))
      return [packet]
    }
    guard let first = packet.withBytes({ AudioFrameHeader(codec: codec, bytes: $0) }),
      first.byteCount <= packet.byteCount
    else { return [packet] }
    let splitter = AudioFrameSplitter(codec: codec, streamIndex: packet.streamIndex, timeBase: timeBase)
    (splitter.isSynchronized, splitter.isSample) = (true, true)
    splitter.append(packet)
    var frames: [Packet] = []
    while let frame = try splitter.flush() { frames.append(frame) }
    guard frames.count > 1 else {
      // The sample itself has more properties.
      if let duration = frames.first?.durationTicks, duration > 0 {
        packet.pointer.pointee.duration = duration
      }
      return [packet]
    }
    if packet.isDiscarded { for frame in frames { frame.discard() } }
    return frames
  }

  // MARK: - Private

  private func next(isAtEnd: Bool) throws(ReelError) -> Packet? {
    guard canSplit else { return whole.isEmpty ? nil : whole.removeFirst() }
    let unit = find(isAtEnd: isAtEnd)
    if let noise = try takeNoise(before: unit?.start ?? (isAtEnd ? buffer.count : offset)) { return noise }
    guard let unit else { return nil }
    return try take(unit)
  }

  /// Returns a packet for the next PES packet with a time that ends at or before `end` and was skipped as a whole.
  private func takeNoise(before end: Int) throws(ReelError) -> Packet? {
    guard let skipStart else { return nil }
    let ends = marks.dropFirst().map(\.offset) + [buffer.count]
    guard
      let index = marks.indices.first(where: {
        marks[$0].presentationTicks != nil && marks[$0].offset >= skipStart && ends[$0] <= end
      }), let ticks = marks[index].presentationTicks.take()
    else { return nil }
    let packet = try Packet()
    try packet.setBytes(copying: [0], streamIndex: streamIndex)
    packet.isNoise = true
    packet.setTimestamps(presentationTicks: ticks, decodingTicks: ticks, isKey: true, isCorrupt: true)
    packet.setPosition(marks[index].position)
    let next = index + 1 < marks.count ? marks[index + 1].presentationTicks : nil
    packet.pointer.pointee.duration = next.map { max(0, $0 &- ticks) } ?? packetDuration
    return packet
  }

  /// Goes on after a byte that is part of no frame. Later frames of a sample would get wrong times.
  private func skipByte() {
    isSynchronized = false
    skipStart = skipStart ?? offset
    offset = isSample ? buffer.count : offset + 1
  }

  /// Finds the next frame at or after `offset`, and moves `offset` past other bytes. Nil if more bytes are needed.
  private func find(isAtEnd: Bool) -> Unit? {
    buffer.withUnsafeBytes { bytes in
      while offset + AudioFrameHeader.byteCount <= bytes.count {
        guard let header = header(in: bytes, at: offset) else {
          skipByte()
          continue
        }
        let end = offset + header.byteCount
        if !isSynchronized {
          switch confirm(header, end: end, in: bytes, isAtEnd: isAtEnd) {
          case true?: isSynchronized = true
          case nil: return nil
          case false?:
            skipByte()
            continue
          }
        }
        guard end <= bytes.count else {
          // A damaged length reaches too far: at the end, it may span whole frames.
          guard isAtEnd else { return nil }
          skipByte()
          continue
        }
        guard header.role == .independent else {
          skipStart = nil
          offset = end
          continue
        }
        return endWithDependents(from: end, in: bytes, isAtEnd: isAtEnd).map {
          Unit(start: offset, end: $0, header: header)
        }
      }
      return nil
    }
  }

  /// Returns whether the bytes after its frame confirm a header; nil if they have not arrived yet.
  private func confirm(
    _ header: AudioFrameHeader, end: Int, in bytes: UnsafeRawBufferPointer, isAtEnd: Bool
  ) -> Bool? {
    if end == bytes.count { return true }
    if end + AudioFrameHeader.byteCount <= bytes.count {
      return self.header(in: bytes, at: end)?.mayFollow(header) ?? false
    }
    return isAtEnd ? end < bytes.count : nil
  }

  /// Returns the end of the frames that depend on one that ends at `end`; nil if they have not arrived yet.
  private func endWithDependents(
    from end: Int, in bytes: UnsafeRawBufferPointer, isAtEnd: Bool
  ) -> Int? {
    guard codec == .eac3 else { return end }
    var end = end
    for _ in 0..<Self.dependentLimit {
      guard end + AudioFrameHeader.byteCount <= bytes.count else { return isAtEnd ? end : nil }
      guard let next = header(in: bytes, at: end), next.role == .dependent else { return end }
      guard end + next.byteCount <= bytes.count else { return isAtEnd ? end : nil }
      end += next.byteCount
    }
    return end
  }

  private func header(in bytes: UnsafeRawBufferPointer, at offset: Int) -> AudioFrameHeader? {
    AudioFrameHeader(codec: codec, bytes: UnsafeRawBufferPointer(rebasing: bytes[offset...]))
  }

  private func take(_ unit: Unit) throws(ReelError) -> Packet {
    offset = unit.end
    skipStart = nil
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

/// The header of one audio frame in an elementary stream: the length of the frame, in bytes and in time.
struct AudioFrameHeader: Hashable {
  /// The role of a frame in its packet.
  enum Role: Hashable {
    /// Decodable on its own.
    case independent
    /// More channels for the frame before it (E-AC-3).
    case dependent
    /// A frame of another programme in the same stream (E-AC-3), which is not decoded.
    case other
  }

  /// The size of the whole frame, including its header.
  var byteCount: Int
  /// The number of samples of each channel.
  var sampleCount: Int
  var sampleRate: Int
  var role = Role.independent
  /// The number of bytes of a header that the decoder must not get.
  var prefixByteCount = 0
  /// The parameters that all frames of a stream share.
  var family: Int

  /// The number of bytes that are enough to read a header of any codec.
  static let byteCount = 7
  /// The largest Opus packet: 48 frames of 1275 bytes (RFC 6716 §3.2), and their lengths.
  private static let opusByteLimit = 64 << 10

  /// Returns true for codecs whose frames can be recognized in a byte stream.
  static func isKnown(for codec: AudioCodec) -> Bool {
    switch codec {
    case .aac, .mp3, .mp2, .ac3, .eac3, .opus: true
    case .vorbis, .flac, .alac, .pcm: false
    }
  }

  /// Reads the header at the beginning of `bytes`; nil if there is none.
  init?(codec: AudioCodec, bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= Self.byteCount else { return nil }
    switch codec {
    case .aac: self.init(adts: bytes)
    case .mp3, .mp2: self.init(mpeg: bytes)
    case .ac3, .eac3: self.init(ac3: bytes)
    case .opus: self.init(opus: bytes)
    case .vorbis, .flac, .alac, .pcm: return nil
    }
  }

  /// Returns true if a frame with this header may follow one with `other` in the same stream.
  func mayFollow(_ other: AudioFrameHeader) -> Bool {
    sampleRate == other.sampleRate && family == other.family
  }

  // MARK: - Private

  /// ISO/IEC 13818-7 §6.2.1.
  private init?(adts bytes: UnsafeRawBufferPointer) {
    // The layer is always 0: MPEG audio has the same sync word.
    guard bytes[0] == 0xff, bytes[1] & 0xf6 == 0xf0 else { return nil }
    let rates = [
      96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350,
    ]
    let rateIndex = Int(bytes[2] >> 2 & 0xf)
    let headerByteCount = bytes[1] & 1 == 0 ? 9 : 7
    byteCount = Int(bytes[3] & 3) << 11 | Int(bytes[4]) << 3 | Int(bytes[5] >> 5)
    guard rates.indices.contains(rateIndex), byteCount > headerByteCount else { return nil }
    sampleRate = rates[rateIndex]
    sampleCount = 1024 * (Int(bytes[6] & 3) + 1)
    family = Int(bytes[1] & 8)
  }

  /// ISO/IEC 11172-3 §2.4.2.3, ISO/IEC 13818-3, and MPEG-2.5 for layer III. Free format can't be distinguished
  /// from noise.
  private init?(mpeg bytes: UnsafeRawBufferPointer) {
    guard bytes[0] == 0xff, bytes[1] & 0xe0 == 0xe0 else { return nil }
    let (version, layer) = (Int(bytes[1] >> 3 & 3), 4 - Int(bytes[1] >> 1 & 3))
    let (bitrateIndex, rateIndex) = (Int(bytes[2] >> 4), Int(bytes[2] >> 2 & 3))
    guard version != 1, layer < 4, (1...14).contains(bitrateIndex), rateIndex < 3 else { return nil }
    let isFirstVersion = version == 3
    let bitrates: [Int]
    switch (layer, isFirstVersion) {
    case (1, true): bitrates = (1...14).map { $0 * 32 }
    case (2, true): bitrates = [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384]
    case (3, true): bitrates = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
    case (1, false): bitrates = [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256]
    default: bitrates = [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
    }
    sampleRate = [44100, 48000, 32000][rateIndex] >> (isFirstVersion ? 0 : version == 2 ? 1 : 2)
    sampleCount = layer == 1 ? 384 : layer == 3 && !isFirstVersion ? 576 : 1152
    let slotByteCount = layer == 1 ? 4 : 1
    let slotCount = sampleCount / 8 / slotByteCount * bitrates[bitrateIndex - 1] * 1000 / sampleRate
    byteCount = (slotCount + Int(bytes[2] >> 1 & 1)) * slotByteCount
    family = version << 2 | layer
  }

  /// ETSI TS 102 366 §4.3 and, for E-AC-3, §E.1.2.
  private init?(ac3 bytes: UnsafeRawBufferPointer) {
    guard bytes[0] == 0x0b, bytes[1] == 0x77 else { return nil }
    let rates = [48000, 44100, 32000]
    let version = Int(bytes[5] >> 3)
    let rateCode = Int(bytes[4] >> 6)
    family = 0
    if version <= 10 {
      let sizeCode = Int(bytes[4] & 0x3f)
      let kilobits = [
        32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640,
      ]
      guard rateCode < 3, sizeCode / 2 < kilobits.count else { return nil }
      // In 16-bit words. At 44.1 kHz sizes alternate, and the code says which one applies.
      let wordCount = kilobits[sizeCode / 2] * 96000 / rates[rateCode] + (rateCode == 1 ? sizeCode & 1 : 0)
      byteCount = wordCount * 2
      // Versions 9 and 10 have half and a quarter of the rate.
      sampleRate = rates[rateCode] >> max(0, version - 8)
      sampleCount = 1536
      return
    }
    let type = bytes[2] >> 6
    guard version <= 16, type != 3 else { return nil }
    byteCount = (Int(bytes[2] & 7) << 8 | Int(bytes[3])) * 2 + 2
    let secondCode = Int(bytes[4] >> 4 & 3)
    if rateCode == 3 {
      guard secondCode < 3 else { return nil }
      sampleRate = rates[secondCode] / 2
      sampleCount = 1536
    } else {
      sampleRate = rates[rateCode]
      sampleCount = 256 * [1, 2, 3, 6][secondCode]
    }
    guard byteCount > Self.byteCount else { return nil }
    role = type == 1 ? .dependent : bytes[2] >> 3 & 7 == 0 ? .independent : .other
  }

  /// Returns the number of samples at 48 kHz of an Opus packet (RFC 6716 §3.1); nil if it is too short.
  fileprivate static func opusSampleCount(_ bytes: UnsafeRawBufferPointer) -> Int? {
    guard bytes.count > 1 else { return nil }
    let configuration = Int(bytes[0] >> 3)
    let frameSampleCount: Int
    switch configuration {
    case 0..<12: frameSampleCount = [480, 960, 1920, 2880][configuration % 4]
    case 12..<16: frameSampleCount = [480, 960][configuration % 2]
    default: frameSampleCount = [120, 240, 480, 960][configuration % 4]
    }
    return frameSampleCount * [1, 2, 2, Int(bytes[1] & 0x3f)][Int(bytes[0] & 3)]
  }

  /// The control header of Opus in MPEG-TS by ETSI TS 101 154 and FFmpeg, and the first byte of the Opus
  /// packet after it (RFC 6716 §3.1).
  private init?(opus bytes: UnsafeRawBufferPointer) {
    guard bytes[0] == 0x7f, bytes[1] & 0xe0 == 0xe0 else { return nil }
    var offset = 2
    var size = 0
    var byte: UInt8
    repeat {
      guard offset < bytes.count else { return nil }
      byte = bytes[offset]
      size += Int(byte)
      offset += 1
    } while byte == 255
    // The trims of start and end, then an extension with its own length.
    if bytes[1] & 0x10 != 0 { offset += 2 }
    if bytes[1] & 0x08 != 0 { offset += 2 }
    if bytes[1] & 0x04 != 0 {
      guard offset < bytes.count else { return nil }
      offset += 1 + Int(bytes[offset])
    }
    guard size > 0, size <= Self.opusByteLimit, offset + 1 < bytes.count,
      let count = Self.opusSampleCount(UnsafeRawBufferPointer(rebasing: bytes[offset...]))
    else { return nil }
    byteCount = offset + size
    prefixByteCount = offset
    sampleCount = count
    sampleRate = 48000
    family = 0
  }
}

/// The time of consecutive samples in whole ticks of a stream's time base, without drift: the duration of a
/// number of samples is rarely a whole number of ticks, so the remainder is kept.
struct AudioClock {
  /// The tick in which the next sample begins; nil before it is known.
  private(set) var ticks: Int64?

  private let timeBase: Rational
  /// The remainder of `ticks`: `remainder / divisor` ticks, less than one.
  private var remainder: Int64 = 0
  private var divisor: Int64 = 1

  /// `timeBase` is seconds per tick. If it is not positive, all times are unknown except those that are set.
  init(timeBase: Rational) { self.timeBase = timeBase }

  /// Sets the tick at which the next sample begins exactly.
  mutating func set(_ ticks: Int64) {
    self.ticks = ticks
    remainder = 0
  }

  mutating func advance(sampleCount: Int, sampleRate: Int) {
    guard let ticks else { return }
    guard timeBase.isPositive, sampleRate > 0, sampleRate <= Int(Int32.max) else {
      self.ticks = nil
      return
    }
    let divisor = Int64(sampleRate) * Int64(timeBase.numerator)
    if divisor != self.divisor {
      remainder = Int64(Int128(remainder) * Int128(divisor) / Int128(self.divisor))
      self.divisor = divisor
    }
    let (whole, rest) = (Int128(sampleCount) * Int128(timeBase.denominator) + Int128(remainder))
      .quotientAndRemainder(dividingBy: Int128(divisor))
    remainder = Int64(rest)
    self.ticks = Int64(clamping: Int128(ticks) + whole)
  }

  mutating func reset() {
    ticks = nil
    remainder = 0
  }
}
