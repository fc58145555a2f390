internal import ReelCore

/// Finds the units of one stream that a decoder took without returning their frames.
///
/// A unit counts as lost if its frame is missing between two returned frames, or after the last one, and the frame on show
/// before it does not last over its time. Units from which no frame is expected do not count:
/// - those that an edit list leaves out, and empty ones,
/// - those without a picture, such as parameter sets alone, and placeholders of packed B frames,
/// - leading pictures (RASL) in HEVC, and those before the first frame, unless a unit decodes by itself there,
/// - a field whose frame lacks the other one.
///
/// A value of one decoder, from one random access point on.
package struct FrameAccount {
  /// Lost units.
  package struct Loss: Sendable, Hashable {
    /// The presentation time, in ticks of the stream's time base.
    package var ticks: Range<Int64>
    package var count: Int
  }

  private struct Unit {
    let packet: Packet
    let ticks: Int64
    /// 0 if unknown.
    let duration: Int64

    func distance(to other: Int64) -> UInt64 { (ticks - other).magnitude }
  }

  private let stream: StreamInfo
  private var awaited: [Unit] = []
  /// The time of the first unit that decodes by itself; nil before it.
  private var entryTicks: Int64?
  /// The last frame that was returned.
  private var last: (ticks: Int64, duration: Int64)?
  /// Units that were not kept until a frame came.
  private var omitted: Loss?

  /// More units than a decoder holds back.
  private static let limit = 256

  package init(stream: StreamInfo) { self.stream = stream }

  /// Records a unit that the decoder gets.
  ///
  /// - Parameter duration: In ticks; 0 if unknown.
  package mutating func feed(_ packet: Packet, at ticks: Int64, lasting duration: Int64) {
    let isFirst = awaited.isEmpty && last == nil
    if entryTicks == nil, packet.isKey ? stream.isEntry(packet) : isFirst && stream.isNoise(packet) {
      entryTicks = ticks
    }
    awaited.append(Unit(packet: packet, ticks: ticks, duration: duration))
    guard awaited.count > Self.limit,
      let first = awaited.indices.min(by: { awaited[$0].ticks < awaited[$1].ticks })
    else { return }
    omit([awaited.remove(at: first)])
  }

  /// Records a frame that the decoder returns; returns the units that are lost between the frame before it and this one.
  ///
  /// - Parameter duration: In ticks; 0 if unknown.
  package mutating func take(frameAt ticks: Int64, lasting duration: Int64) -> Loss? {
    // A decoder may estimate times, so the nearest unit is the frame's own.
    let own = awaited.indices.min { awaited[$0].distance(to: ticks) < awaited[$1].distance(to: ticks) }
    var length = duration
    if let own {
      let unit = awaited[own]
      let reach = UInt64(max(duration, unit.duration, 0))
      if reach == 0 || unit.distance(to: ticks) * 2 <= reach { awaited.remove(at: own) }
      if length == 0 { length = unit.duration }
    }
    let passed = awaited.filter { $0.ticks < ticks }
    awaited.removeAll { $0.ticks < ticks }
    let start = end ?? entryTicks
    defer {
      last = (ticks, length)
      omitted = nil
    }
    // Without a gap between the frames nothing is missing.
    guard let start, start < ticks, (ticks - start) * 2 > length else { return nil }
    return loss(passed, from: start, to: ticks)
  }

  /// Ends the account, after all frames were returned; returns the units that are lost after the last one.
  package mutating func finish() -> Loss? {
    defer { self = FrameAccount(stream: stream) }
    guard let start = end ?? entryTicks ?? awaited.map(\.ticks).min() else { return nil }
    return loss(awaited, from: start, to: .max)
  }

  // MARK: - Private

  /// The end of the last frame, or its time if its duration is unknown.
  private var end: Int64? { last.map { $0.ticks + $0.duration } }

  private mutating func omit(_ units: [Unit]) {
    guard let start = end ?? entryTicks, let loss = loss(units, from: start, to: .max) else { return }
    omitted = loss
  }

  private func loss(_ units: [Unit], from start: Int64, to end: Int64) -> Loss? {
    let lost = units.filter { $0.ticks + $0.duration / 4 >= start && stream.expectsFrame(of: $0.packet) }
    let fields = lost.count == 1 && omitted == nil && lost[0].packet.isField ? 1 : 0
    guard lost.count > fields || omitted != nil else { return nil }
    let from = max(start, lost.map(\.ticks).min() ?? .min)
    let to = min(end, lost.map { $0.ticks + max($0.duration, 1) }.max() ?? .min)
    var loss = omitted ?? Loss(ticks: from..<max(from, to), count: 0)
    loss.count += lost.count
    loss.ticks = min(loss.ticks.lowerBound, from)..<max(loss.ticks.upperBound, to)
    return loss
  }
}

extension StreamInfo {
  /// Returns true if a decoder that begins with this key frame returns it, or would if it were not damaged. An H.264
  /// decoder may drop frames after other pictures than IDR pictures.
  fileprivate func isEntry(_ packet: Packet) -> Bool {
    guard videoCodec == .h264, let slice = packet.firstSlice(codec: .h264, framing: nalFraming) else {
      return true
    }
    return slice.isIDR || !packet.withBytes { $0.areWholeUnits(framing: nalFraming) }
  }

  /// Returns true if a unit of H.264 or HEVC has no NAL unit, so that it may have been a key frame.
  fileprivate func isNoise(_ packet: Packet) -> Bool {
    guard videoCodec == .h264 || videoCodec == .hevc, packet.byteCount > 0 else { return false }
    return !packet.withBytes { $0.areWholeUnits(framing: nalFraming) }
  }

  fileprivate func expectsFrame(of packet: Packet) -> Bool {
    guard !packet.isDiscarded, packet.byteCount > 0, let codec = videoCodec else { return false }
    if codec.isMPEGVideo { return packet.byteCount > MPEGPicture.notCodedByteCount }
    guard codec == .h264 || codec == .hevc else { return true }
    let isWhole = packet.withBytes { $0.areWholeUnits(framing: nalFraming) }
    guard let slice = packet.firstSlice(codec: codec, framing: nalFraming) else { return !isWhole }
    // RASL_N and RASL_R.
    return codec == .h264 || !isWhole || slice.type != 8 && slice.type != 9
  }
}
