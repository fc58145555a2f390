package import ReelCore
package import ReelSources

/// Reads packets from a seek position: the first packet of video is a key frame at or before it.
///
/// A container may find the wrong key frame, because it searches by decoding times, and a playlist's durations
/// are rounded. If the first key frame is after the position, the seek is repeated further back.
///
/// Confined like its base.
package final class LandingReader {
  package let base: any PacketReader
  private var scope: LoadScope
  private var landing: Landing?
  /// The packets held back until the seek has landed, in reverse order.
  private var ready: [MediaPacket] = []

  private struct Landing {
    /// The position on the player's timeline.
    let target: MediaTime
    let loop: LoopIteration
    var step = 0
    /// The packets read so far, in order.
    var packets: [MediaPacket] = []
  }

  /// The number of steps back after which reading starts at the beginning. A position may be any distance
  /// beyond the end.
  private static let stepLimit = 30
  /// The number of packets after which a stream is read without a key frame.
  private static let packetLimit = 1000

  package init(_ base: any PacketReader, scope: LoadScope) {
    self.base = base
    self.scope = scope
  }

  /// Reads the packets of a track of a source. The parameters are those of `ResolvedSource.packetReader`.
  package convenience init(
    _ source: OpenSource, for role: ReaderRole, controller: RungController, offsets: TimestampOffsets,
    log: @escaping ReadingLog, scope: LoadScope
  ) {
    let base = source.source.packetReader(
      for: role, manifests: source.manifests, context: source.context, controller: controller,
      offsets: offsets, log: log, scope: scope)
    self.init(base, scope: scope)
  }

  /// Seeks to `time` in an iteration. Reading ends with `scope`.
  ///
  /// - Parameters:
  ///   - time: The position on the player's timeline; nil for the beginning of the item.
  ///   - needsKeyFrame: False if there may be no key frame before `time`.
  package func seek(to time: MediaTime?, needsKeyFrame: Bool, loop: LoopIteration, scope: LoadScope) throws {
    self.scope = scope
    ready = []
    landing = nil
    if needsKeyFrame, let time { landing = Landing(target: time, loop: loop) }
    try base.seek(to: time.map { $0 - loop.shift }, loop: loop, scope: scope)
  }

  /// Seeks to a place that the reader has named.
  package func seek(to place: KeyFramePlace, scope: LoadScope) throws {
    self.scope = scope
    ready = []
    landing = nil
    try base.seek(to: place, scope: scope)
  }

  /// Waits for the next packet. Throws like `PacketReader.next()`.
  package func next() throws -> MediaPacket? {
    while true {
      if let packet = ready.popLast() { return packet }
      let packet = try base.next()
      guard let landing else { return packet }
      if scope.isCancelled { throw CancellationError() }
      if let packet {
        try land(packet)
      } else if landing.step < Self.stepLimit {
        // There is no key frame from there to the end.
        try stepBack(landing)
      } else {
        release()
      }
    }
  }

  // MARK: - Private

  private func land(_ packet: MediaPacket) throws {
    guard var landing else { return }
    let isKey = packet.kind == .video && packet.isKey
    if packet.kind == .audio || isKey || landing.packets.count >= Self.packetLimit {
      landing.packets.append(packet)
    }
    self.landing = landing
    guard isKey || landing.packets.count > Self.packetLimit else { return }
    if packet.time > landing.target, landing.step < Self.stepLimit {
      try stepBack(landing)
    } else {
      release()
    }
  }

  private func release() {
    ready = landing?.packets.reversed() ?? []
    landing = nil
  }

  private func stepBack(_ landing: Landing) throws {
    var landing = landing
    let back = MediaTime(value: 2 << Int64(landing.step), timescale: 1)
    let place = max(.zero, landing.target - landing.loop.shift - back)
    landing.packets = []
    // Before the beginning there is nothing to search.
    landing.step = place == .zero ? Self.stepLimit : landing.step + 1
    self.landing = landing
    try base.seek(to: place, loop: landing.loop, scope: scope)
  }
}
