internal import ReelCore

/// The access units of one video stream of a demuxer, each as one packet, with those that were read ahead.
///
/// Confined to its reader's thread.
struct AccessUnitReader {
  /// A packet that was taken before its end was sure, or not.
  enum Next {
    case packet(PacketBox)
    /// All that has come of the next access unit so far; `next()` will give it whole.
    case tentative(PacketBox)
    case end
  }

  private let demuxer: Demuxer
  private let stream: StreamInfo
  private var splitter: AccessUnitSplitter?
  private var readAhead: [PacketBox] = []
  private var hasEnded = false

  /// mpegts cuts a PES packet without a length at this size (`MAX_PES_PAYLOAD` in libavformat/mpegts.c): one of this
  /// size has not ended.
  private static let cutByteCount = 200 * 1024

  init(demuxer: Demuxer, stream: StreamInfo) {
    self.demuxer = demuxer
    self.stream = stream
    reset()
  }

  /// Puts packets back, to be given next.
  mutating func putBack(_ boxes: [PacketBox]) { readAhead = boxes + readAhead }

  /// Forgets everything read ahead, after a seek.
  mutating func reset() {
    readAhead = []
    hasEnded = false
    splitter = nil
    // MPEG-TS is demuxed without libavformat's parser: its packets are PES packets.
    if demuxer.format == .mpegTS, let codec = stream.videoCodec, codec == .h264 || codec == .hevc {
      splitter = AccessUnitSplitter(codec: codec, streamIndex: stream.index)
    }
  }

  /// The next access unit; nil at the end.
  mutating func next() throws -> PacketBox? {
    switch try next(allowingTentative: false) {
    case .packet(let box), .tentative(let box): box
    case .end: nil
    }
  }

  /// The next access unit, or what there is of it.
  mutating func next(allowingTentative: Bool) throws -> Next {
    if !readAhead.isEmpty { return .packet(readAhead.removeFirst()) }
    if hasEnded { return .end }
    guard splitter != nil else {
      guard let packet = try demuxedPacket() else { return .end }
      return .packet(PacketBox(packet))
    }
    while true {
      if let packet = try splitter?.next() { return .packet(PacketBox(packet)) }
      guard let packet = try demuxedPacket() else {
        guard let packet = try splitter?.flush() else { return .end }
        return .packet(PacketBox(packet))
      }
      let isCut = packet.byteCount >= Self.cutByteCount
      splitter?.append(packet)
      if allowingTentative, !isCut {
        if let packet = try splitter?.next() { return .packet(PacketBox(packet)) }
        if let packet = try splitter?.peek() { return .tentative(PacketBox(packet)) }
      }
    }
  }

  private mutating func demuxedPacket() throws -> Packet? {
    while let packet = try demuxer.nextPacket() {
      guard packet.streamIndex == stream.index else { continue }
      if packet.isEncrypted { throw ReelError.encrypted(codecName: stream.codecName) }
      return packet
    }
    hasEnded = true
    return nil
  }
}

/// A packet that can stand in an array: noncopyable values can't.
final class PacketBox {
  let packet: Packet

  init(_ packet: consuming Packet) { self.packet = packet }
}

extension ReelError {
  static func encrypted(codecName: String) -> ReelError {
    ReelError(
      .unsupported, "the \(codecName) samples are encrypted (Common Encryption), and there is no key for them"
    )
  }
}
