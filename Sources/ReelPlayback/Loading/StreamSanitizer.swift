internal import ReelCore
internal import ReelFFmpeg

/// Looks at how a segment begins that is a stream of its own (MPEG-TS, packed audio), so that a page in its place does
/// not go unnoticed: a demuxer looks for the next packet, and finds the one of the segment after it.
///
/// Nothing is passed on before it is clear that it is media. Where no format is recognized, MPEG-TS is looked for
/// further on, as damage may stand at the beginning.
struct StreamSanitizer {
  /// The beginning, as far as it has come; nil when it has been looked at.
  private var head: [UInt8]? = []

  /// How much of it is looked at.
  private var wantedCount = SourceSniffer.byteCount / 4

  /// Where no format was recognized.
  private static let searchedByteCount = 16 << 10

  /// The bytes to pass on. Throws `ReelError.badMedia` where they are no media.
  mutating func pass(_ chunk: [UInt8]) throws(ReelError) -> [UInt8] {
    guard var head = head.take() else { return chunk }
    head.append(contentsOf: chunk)
    if head.count >= wantedCount {
      if try Self.isMedia(head, isAll: head.count >= Self.searchedByteCount) { return head }
      wantedCount = head.count * 2
    }
    self.head = head
    return []
  }

  /// Ends the segment; gives what is left to pass on.
  ///
  /// Throws `ReelError.badMedia` where there was no media.
  mutating func finish() throws(ReelError) -> [UInt8] {
    guard let head = head.take(), !head.isEmpty else { return [] }
    _ = try Self.isMedia(head, isAll: true)
    return head
  }

  // MARK: - Private

  /// False where that can't be told yet.
  private static func isMedia(_ head: [UInt8], isAll: Bool) throws(ReelError) -> Bool {
    let what: String
    switch SourceSniffer.kind(of: Array(head.prefix(SourceSniffer.byteCount))) {
    case .media: return true
    case .manifest: what = "a manifest"
    case .other(let description):
      if !SourceSniffer.isText(head) {
        if hasPackets(head) { return true }
        if !isAll { return false }
      }
      what = description
    }
    throw ReelError(.badMedia, "the segment is not media: \(what)")
  }

  /// Four packets of MPEG-TS in a row, anywhere.
  private static func hasPackets(_ bytes: [UInt8]) -> Bool {
    TransportPacket.sizes.contains { size in
      bytes.indices.dropLast(3 * size).contains { start in
        (0..<4).allSatisfy { bytes[start + $0 * size] == TransportPacket.syncByte }
      }
    }
  }
}
