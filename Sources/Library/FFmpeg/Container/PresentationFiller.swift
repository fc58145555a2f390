internal import ReelCore

/// Sets the presentation times of MPEG video in containers that store only decoding times: AVI, Matroska tracks in
/// Video for Windows mode, and most frames of MPEG-PS.
///
/// A B frame is shown when it is decoded. An I or P frame is shown when the next I or P frame is decoded. It is
/// held until that one arrives, together with the B frames in between.
struct PresentationFiller {
  private let codec: VideoCodec
  /// True if the demuxer's presentation times are guesses, and so are replaced.
  private let replaces: Bool
  /// The packets held back; the first one still needs its presentation time.
  private var held: [Packet] = []
  private var ready: [Packet] = []

  /// The maximum number of packets held back.
  private static let maximumHeldCount = 32

  /// Nil for codecs other than MPEG video.
  init?(codec: VideoCodec, format: ContainerFormat) {
    guard codec.isMPEGVideo else { return nil }
    self.codec = codec
    replaces = format == .avi
  }

  mutating func append(_ packet: Packet) {
    let picture = packet.withBytes { MPEGPicture(codec: codec, bytes: $0) }
    let isBidirectional = picture?.isBidirectional ?? true
    let ticks = packet.decodingTicks
    if isBidirectional {
      if replaces || packet.presentationTicks == nil { packet.setPresentationTicks(ticks) }
    } else {
      release(presentedAt: ticks)
    }
    if !held.isEmpty || !isBidirectional && ticks != nil && (replaces || packet.presentationTicks == nil) {
      held.append(packet)
      if held.count > Self.maximumHeldCount { release(presentedAt: ticks) }
    } else {
      ready.append(packet)
    }
  }

  /// Returns the next unit in decoding order, if its time is known.
  mutating func next() -> Packet? { ready.isEmpty ? nil : ready.removeFirst() }

  /// Like `next()`, at the end of the stream: the last units get their times.
  mutating func flush() -> Packet? {
    if let first = held.first {
      let last = held.compactMap(\.decodingTicks).max()
      release(presentedAt: last.map { $0 &+ max(1, first.durationTicks) })
    }
    return next()
  }

  // MARK: - Private

  private mutating func release(presentedAt ticks: Int64?) {
    held.first?.setPresentationTicks(ticks)
    ready += held
    held = []
  }
}
