internal import Logging
internal import ReelCore
internal import ReelFFmpeg

/// The chunks of a media file: parts that begin with a key frame.
struct MediaFileChunks {
  /// Key frames that follow sooner begin no chunk: 1 s, the chunk of a policy that knows no segments.
  static let leastDuration = Duration.seconds(1)

  let chunks: ItemChunks

  /// Throws `ReelError` if the file can't be demuxed or has no video.
  init(_ bytes: [UInt8], format: ContainerFormat, name: String, logger: Logger) throws {
    let reader = try ContainerReader(
      source: ByteArraySource(bytes), format: format, name: name, logger: logger)
    var starts: [(time: Duration, position: Int64)] = []
    var (first, end) = (Duration.zero, Duration.zero)
    var (frameCount, startEnd, lastEnd) = (0, Int64(0), Int64(0))
    reading: while true {
      switch try reader.next() {
      case .audio: continue
      // Other timestamps follow.
      case .programChanged, .end: break reading
      case .video(let box):
        guard let stream = reader.video else { continue }
        let ticks = box.packet.decodingTicks ?? box.packet.presentationTicks
        let time = ticks.map { Self.duration($0, stream.timeBase) } ?? end
        let position = box.packet.position ?? lastEnd
        if frameCount == 0 { (first, end) = (time, time) }
        frameCount += 1
        lastEnd = max(lastEnd, reader.position)
        if frameCount <= 2 { startEnd = lastEnd }
        end = max(end, time + Self.duration(box.packet.durationTicks, stream.timeBase))
        if let last = starts.last {
          guard box.packet.isKey, position > last.position, time - last.time >= Self.leastDuration else {
            continue
          }
        }
        starts.append((time, position))
      }
    }
    guard let begin = starts.first else { throw ReelError(.badMedia, "no frame in the media") }
    if let stated = reader.durationMicroseconds {
      end = max(first + .microseconds(stated), (starts.last?.time ?? first) + .milliseconds(1))
    }
    // Of an MP4 whose index is at the end, the index is read before the media.
    let index =
      format == .mp4 ? Self.movie(in: bytes).flatMap { $0.lowerBound > begin.position ? $0 : nil } : nil
    let mediaEnd = index.map { Int64($0.lowerBound) } ?? Int64(bytes.count)
    let made = starts.indices.map { place in
      let (time, position) = starts[place]
      let next = place + 1 < starts.count ? starts[place + 1] : (end, max(mediaEnd, position))
      return ItemChunks.Chunk(
        duration: next.0 - time, byteCount: next.1 - position,
        startByteCount: place == 0 ? min(max(startEnd - position, 1), next.1 - position) : nil)
    }
    chunks = ItemChunks(
      manifestByteCount: 0,
      rungs: [
        ItemChunks.Rung(
          id: "", bitRate: 0, headerByteCount: begin.position + Int64(index?.count ?? 0),
          headerRequestCount: index == nil ? 1 : 2, chunks: made)
      ])
  }

  // MARK: - Private

  private static func duration(_ ticks: Int64, _ base: Rational) -> Duration {
    .nanoseconds(Int64((Double(ticks) * base.value * 1e9).rounded()))
  }

  /// Where the top-level `moov` box is; nil if there is none.
  private static func movie(in bytes: [UInt8]) -> Range<Int>? {
    var offset = 0
    while let header = MP4BoxHeader(bytes[offset...]), !header.isMalformed {
      let end = offset + min(Int(clamping: header.byteCount ?? .max), bytes.count - offset)
      if header.type == "moov" { return offset..<end }
      guard end > offset, end < bytes.count else { return nil }
      offset = end
    }
    return nil
  }
}
