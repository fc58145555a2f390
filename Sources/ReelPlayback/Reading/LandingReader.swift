internal import ReelCore

/// Reads packets from a place that is sought: what comes first is a key frame at or before it.
///
/// A container's idea of the key frame before a time may be off, as it goes by decoding times, and a playlist's durations
/// are rounded: where the first key frame is a later one, the seek is made again, further back.
///
/// Confined as its base is.
final class LandingReader {
  let base: any PacketReader
  private var scope: LoadScope
  private var landing: Landing?
  /// Held back until it was clear that the seek has landed, in reverse order.
  private var ready: [(packet: MediaPacket, kind: MediaPacket.Kind)] = []

  private struct Landing {
    /// On the player's timeline.
    let target: MediaTime
    let loop: LoopIteration
    var step = 0
    /// What was read so far, in order.
    var units: [(packet: MediaPacket, kind: MediaPacket.Kind)] = []
  }

  /// So far back that it is the beginning: a place may lie as far behind the end as one likes.
  private static let stepLimit = 30
  /// A stream without key frames is taken as it comes.
  private static let unitLimit = 1000

  init(_ base: any PacketReader, scope: LoadScope) {
    self.base = base
    self.scope = scope
  }

  /// Goes to `time` in an iteration; reading ends with `scope`.
  ///
  /// - Parameters:
  ///   - time: On the player's timeline; nil for where the item begins.
  ///   - needsKeyFrame: False where there may be no key frame before `time`.
  func seek(to time: MediaTime?, needsKeyFrame: Bool, loop: LoopIteration, scope: LoadScope) throws {
    self.scope = scope
    ready = []
    landing = nil
    if needsKeyFrame, let time { landing = Landing(target: time, loop: loop) }
    try base.seek(to: time.map { $0 - loop.shift }, loop: loop, scope: scope)
  }

  /// Waits for the next packet. Throws as `PacketReader.next()` does.
  func next() throws -> ReadUnit {
    while true {
      if let unit = ready.popLast() { return .packet(unit.packet, unit.kind) }
      let unit = try base.next()
      guard let landing else { return unit }
      if scope.isCancelled { throw CancellationError() }
      switch unit {
      case .packet(let packet, let kind):
        try land(packet, kind)
      case .end where landing.step < Self.stepLimit:
        // No key frame from there to the end.
        try stepBack(landing)
      case .end:
        release()
      }
    }
  }

  // MARK: - Private

  private func land(_ packet: MediaPacket, _ kind: MediaPacket.Kind) throws {
    guard var landing else { return }
    let isKey = kind == .video && packet.isKey
    if kind == .audio || isKey || landing.units.count >= Self.unitLimit {
      landing.units.append((packet, kind))
    }
    self.landing = landing
    guard isKey || landing.units.count > Self.unitLimit else { return }
    if packet.time > landing.target, landing.step < Self.stepLimit {
      try stepBack(landing)
    } else {
      release()
    }
  }

  private func release() {
    ready = landing?.units.reversed() ?? []
    landing = nil
  }

  private func stepBack(_ landing: Landing) throws {
    var landing = landing
    let back = MediaTime(value: 2 << Int64(landing.step), timescale: 1)
    let place = max(.zero, landing.target - landing.loop.shift - back)
    landing.units = []
    // At the beginning there is nothing further back.
    landing.step = place == .zero ? Self.stepLimit : landing.step + 1
    self.landing = landing
    try base.seek(to: place, loop: landing.loop, scope: scope)
  }
}
