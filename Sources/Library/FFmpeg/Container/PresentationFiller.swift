/// Sets the presentation times of MPEG video in containers that store only decoding times: AVI, Matroska tracks in
/// Video for Windows mode, and most frames of MPEG-PS.
///
/// A B frame is shown when it is decoded. An I or P frame is shown when the next I or P frame is decoded. It is
/// held until that one arrives, together with the B frames in between.
struct PresentationFiller {
  private let codec: VideoCodec
  /// The demuxer's presentation times are guesses and get replaced.
  private let replaces: Bool
  /// The packets held; the first one still needs its presentation time.
  private var held: [SharedPacket] = []
  private var ready: [SharedPacket] = []

  /// No more packets than this are held.
  private static let maximumHeldCount = 32

  /// Nil for codecs other than MPEG video.
  init?(codec: VideoCodec, format: ContainerFormat) {
    guard codec.isMPEGVideo else { return nil }
    self.codec = codec
    replaces = format == .avi
  }

  mutating func append(_ box: SharedPacket) {
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

  /// The next unit in decoding order, if its time is known.
  mutating func next() -> SharedPacket? { ready.isEmpty ? nil : ready.removeFirst() }

  /// Like `next()`, at the end of the stream: the last units get their times.
  mutating func flush() -> SharedPacket? {
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
