import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport

@testable import ReelFFmpeg
@testable import ReelReading
@testable import ReelSources

/// Makes packets with any places on a timeline. There is nothing in them.
final class PacketMaker {
  let video: StreamInfo
  let audio: StreamInfo

  init() throws {
    var options = ContainerReader.Options()
    options.wantsAudio = true
    let container = try makeContainer("media/h264-faststart.mp4", options: options)
    guard let video = container.video, let audio = container.audio else {
      throw ReelError(.badMedia, "no two streams")
    }
    self.video = video
    self.audio = audio
  }

  func makeSpan(
    _ kind: TrackKind = .video, iteration: Int = 0, shift: MediaTime = .zero, rung: Rung? = nil
  ) -> StreamSpan {
    StreamSpan(
      stream: kind == .video ? video : audio, offset: TimestampOffset(offset: .zero), rung: rung,
      loop: LoopIteration(iteration: iteration, shift: shift), followsGap: false)
  }

  func make(
    _ time: MediaTime, lasting duration: MediaTime, of span: StreamSpan, isKey: Bool = true,
    byteCount: Int = 1
  ) throws -> MediaPacket {
    MediaPacket(
      unit: try Packet(), span: span, mediaTime: time - span.shift, duration: duration, isKey: isKey,
      byteCount: byteCount)
  }

  /// An access unit with timestamps of a stream.
  func makeUnit(pts: Int64?, dts: Int64?, isKey: Bool = true) throws -> Packet {
    let packet = try Packet()
    packet.setTimestamps(presentationTicks: pts, decodingTicks: dts, isKey: isKey, isCorrupt: false)
    return packet
  }
}

/// A container below Fixtures.
func makeContainer(
  _ path: String, options: ContainerReader.Options = ContainerReader.Options()
) throws -> ContainerReader {
  try ContainerReader(
    source: FileByteSource(path: Fixtures.folder.appending(path: path).path),
    format: Fixtures.containerFormat(of: path),
    options: options, name: path, logger: silentLogger)
}

/// All packets of a file, as a player reads them.
func readPackets(
  _ path: String, wantsAudio: Bool = false, loop: LoopIteration = LoopIteration(), start: MediaTime = .zero
) throws -> [MediaPacket] {
  var options = ContainerReader.Options()
  options.wantsAudio = wantsAudio
  let container = try makeContainer(path, options: options)
  let isPlaced = container.format == .mp4 || container.format == .matroska
  var placement = TimestampMapper.Placement(offset: TimestampOffset(offset: isPlaced ? start : nil))
  placement.start = start
  placement.loop = loop
  var mapper = TimestampMapper(container, placement)
  var packets: [MediaPacket] = []
  while true {
    switch try container.next() {
    case .video(let unit):
      if let packet = mapper.stamped(unit, .video) { packets.append(packet) }
    case .audio(let unit):
      if let packet = mapper.stamped(unit, .audio) { packets.append(packet) }
    case .programChanged:
      mapper.begin(container)
    case .end:
      return packets
    }
  }
}

/// Packets that are all there.
final class PacketList: PacketSource {
  private var packets: ArraySlice<MediaPacket>

  init(_ packets: [MediaPacket]) { self.packets = packets[...] }

  func peek() -> Pulled<MediaPacket> { packets.first.map(Pulled.element) ?? .end }

  func next(of span: StreamSpan?) -> Pulled<MediaPacket> {
    guard let packet = packets.first, span.map({ $0 === packet.span }) ?? true else { return .end }
    return .element(packets.removeFirst())
  }
}
