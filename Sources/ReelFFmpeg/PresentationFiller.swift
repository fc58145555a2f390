/// Gives the pictures of MPEG video their presentation times in containers that store decoding times only: AVI,
/// Matroska with a track of Video for Windows, and most pictures of MPEG-PS.
///
/// A picture that is shown before the one that was decoded before it (B) is shown when it is decoded. Any other is shown
/// when the next such one is decoded: it is held until that has come, and with it the ones between.
struct PresentationFiller {
  private let codec: VideoCodec
  /// The presentation times are guesses of the demuxer.
  private let replaces: Bool
  /// The first waits for its time.
  private var held: [PacketBox] = []
  private var ready: [PacketBox] = []

  /// There are no more pictures than this between two that others are predicted from.
  private static let maximumHeldCount = 32

  /// Nil for a codec whose pictures are in order, or which says more of it.
  init?(codec: VideoCodec, format: ContainerFormat) {
    guard codec.isMPEGVideo else { return nil }
    self.codec = codec
    replaces = format == .avi
  }

  mutating func append(_ box: PacketBox) {
    let packet = box.packet.withBytes { MPEGPicture(codec: codec, bytes: $0) }
    let isBidirectional = packet?.isBidirectional ?? true
    let ticks = box.packet.decodingTicks
    if isBidirectional {
      if replaces || box.packet.presentationTicks == nil { box.packet.setPresentationTicks(ticks) }
    } else {
      release(presentedAt: ticks)
    }
    if !held.isEmpty || !isBidirectional && ticks != nil && (replaces || box.packet.presentationTicks == nil)
    {
      held.append(box)
      if held.count > Self.maximumHeldCount { release(presentedAt: ticks) }
    } else {
      ready.append(box)
    }
  }

  /// The next unit in decoding order, where its time is known.
  mutating func next() -> PacketBox? { ready.isEmpty ? nil : ready.removeFirst() }

  /// The last units of the stream.
  mutating func flush() -> PacketBox? {
    if let first = held.first {
      let last = held.compactMap { $0.packet.decodingTicks }.max()
      release(presentedAt: last.map { $0 &+ max(1, first.packet.durationTicks) })
    }
    return next()
  }

  // MARK: - Private

  private mutating func release(presentedAt ticks: Int64?) {
    held.first?.packet.setPresentationTicks(ticks)
    ready += held
    held = []
  }
}
