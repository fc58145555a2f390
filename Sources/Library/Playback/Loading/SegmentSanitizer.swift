internal import ReelCore
internal import ReelFFmpeg

/// Checks the bytes of one segment on their way to the demuxer.
enum SegmentSanitizer {
  case fragments(FragmentSanitizer)
  case stream(StreamSanitizer)

  /// The property of `FragmentSanitizer`; nil for other segments.
  var keyFrameEnd: Int64? {
    switch self {
    case .fragments(let watch): watch.keyFrameEnd
    case .stream: nil
    }
  }

  /// Returns the bytes to pass on. Throws `ReelError.badMedia` if the segment is unusable.
  mutating func pass(_ chunk: [UInt8]) throws(ReelError) -> [UInt8] {
    switch self {
    case .fragments(var watch):
      defer { self = .fragments(watch) }
      return try watch.pass(chunk)
    case .stream(var watch):
      defer { self = .stream(watch) }
      return try watch.pass(chunk)
    }
  }

  /// Ends the segment. Throws `ReelError.badMedia` if none of it can be used.
  mutating func finish() throws(ReelError) -> FragmentSanitizer.Ending {
    switch self {
    case .fragments(var watch):
      defer { self = .fragments(watch) }
      return try watch.finish()
    case .stream(var watch):
      defer { self = .stream(watch) }
      return try watch.finish()
    }
  }
}

/// Checks the beginning of a segment without boxes (MPEG-TS, packed audio), to detect an error page in its
/// place. A demuxer would skip it and find the next packet in the following segment.
///
/// Nothing is passed on until it is clear that it is media. If no format is recognized, MPEG-TS packets are
/// searched for further on, because the beginning may be damaged.
struct StreamSanitizer {
  /// The beginning, as far as it has arrived; nil once it has been checked.
  private var head: [UInt8]? = []

  /// The number of bytes to check.
  private var wantedCount = SourceSniffer.byteCount / 4
  /// If the segment is MPEG-TS, the size of its packets, and the number of bytes passed on since the first one.
  private var packets: (size: Int, byteCount: Int)?

  /// Returns the bytes to pass on. Throws `ReelError.badMedia` if they are not media.
  mutating func pass(_ chunk: [UInt8]) throws(ReelError) -> [UInt8] {
    guard var head = head.take() else {
      packets?.byteCount += chunk.count
      return chunk
    }
    head.append(contentsOf: chunk)
    if head.count >= wantedCount {
      if try Self.isMedia(head, isAll: head.count >= SourceSniffer.largestByteCount) {
        packets = TransportPacket.run(in: head).map { ($0.size, head.count - $0.start) }
        return head
      }
      wantedCount = head.count * 2
    }
    self.head = head
    return []
  }

  /// Ends the segment; returns the remaining bytes. A segment of MPEG-TS that ends within a packet is damaged.
  ///
  /// Throws `ReelError.badMedia` if there was no media.
  mutating func finish() throws(ReelError) -> FragmentSanitizer.Ending {
    guard let head = head.take(), !head.isEmpty else {
      guard let packets, packets.byteCount % packets.size != 0 else { return FragmentSanitizer.Ending() }
      return FragmentSanitizer.Ending(
        damage: ReelError(.badMedia, "the segment is cut off: it ends inside of a packet"))
    }
    _ = try Self.isMedia(head, isAll: true)
    return FragmentSanitizer.Ending(bytes: head)
  }

  // MARK: - Private

  /// Returns false if more bytes are needed to tell.
  private static func isMedia(_ head: [UInt8], isAll: Bool) throws(ReelError) -> Bool {
    let what: String
    switch SourceSniffer.kind(of: Array(head.prefix(SourceSniffer.byteCount))) {
    case .media: return true
    case .manifest: what = "a manifest"
    case .other(let description):
      if !SourceSniffer.isText(head) {
        if TransportPacket.run(in: head) != nil { return true }
        if !isAll { return false }
      }
      what = description
    }
    throw ReelError(.badMedia, "the segment is not media: \(what)")
  }
}
