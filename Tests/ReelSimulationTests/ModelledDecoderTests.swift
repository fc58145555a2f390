import ReelCore
import ReelFFmpeg
import ReelPool
import ReelSimulation
import ReelTestSupport
import Testing

@Suite("Decoders of a simulation", .hangLimit)
struct ModelledDecoderTests {
  private static let paths = Fixtures.names(in: "media").filter { !$0.hasPrefix("audio-") }.map {
    "media/\($0)"
  }

  /// Files whose frames have the same times and sizes, but come at other calls.
  private static let exceptions: Set = [
    // Where the parameter sets change, the model puts out all frames that wait, and begins again.
    "media/h264-size-change.ts"
  ]

  private func units(_ path: String) throws -> (StreamInfo, [Packet]) {
    let container = try ContainerReader(
      source: MemorySource(Fixtures.bytes(path)), format: Fixtures.containerFormat(of: path), name: path,
      logger: silentLogger)
    var packets: [Packet] = []
    loop: while true {
      switch try container.next() {
      case .video(let packet): packets.append(packet)
      case .end: break loop
      default: break
      }
    }
    return (try #require(container.video), packets)
  }

  /// The frames of a stream, and how many packets each took; after `seekAt` frames it goes back to a key frame. Of the
  /// first two frames after each start, the pixels too.
  private func course(
    _ stream: StreamInfo, _ packets: [Packet], by decoders: any DecoderMaking, opensWithFirst: Bool,
    seekAt: Int?
  ) throws -> [String] {
    var options = VideoDecoder.Options()
    options.decoders = decoders
    let source = ListedUnits(packets)
    let decoder = try VideoDecoder(
      stream: stream, source: source, options: options, name: "test", logger: silentLogger)
    var lines: [String] = []
    var (isFirst, count, sinceStart) = (opensWithFirst, 0, 0)
    while true {
      switch try isFirst ? decoder.firstFrame() : decoder.nextFrame() {
      case .element(let frame):
        isFirst = false
        count += 1
        sinceStart += 1
        let ticks = frame.presentationTicks.map { "\($0)" } ?? "-"
        let md5 = sinceStart > 2 ? "" : " \(try frame.md5())"
        lines.append(
          "\(ticks) \(frame.durationTicks) \(frame.size) \(frame.byteCount) after \(source.next) "
            + "held \(decoder.facts.heldByteCount(outsideCount: 1))\(md5)")
        if count == seekAt {
          source.next = packets.lastIndex { $0.isKey } ?? 0
          try decoder.reset()
          isFirst = opensWithFirst
          sinceStart = 0
          lines.append("seek")
        }
      case .wait: lines.append("needs")
      case .end: return lines
      }
    }
  }

  private func times(_ lines: [String]) -> [String] {
    lines.map { line in
      guard let range = line.firstRange(of: " after") else { return line }
      return String(line[..<range.lowerBound])
    }
  }

  @Test("Frames come at the same calls as from libavcodec, with the same times and sizes", arguments: paths)
  func course(path: String) throws {
    let (stream, packets) = try units(path)
    let model = ModelledDecoders(cost: DecodeCost(frame: .zero), in: SimulatedRuntime())
    for seekAt in [nil, 3, 7] {
      for opensWithFirst in [true, false] {
        let real = try course(
          stream, packets, by: LibavDecoders(), opensWithFirst: opensWithFirst, seekAt: seekAt)
        // The second time everything that is decoded is known.
        for _ in 0..<2 {
          let other = try course(stream, packets, by: model, opensWithFirst: opensWithFirst, seekAt: seekAt)
          let isException = Self.exceptions.contains(path)
          let (lines, others) = isException ? (times(real), times(other)) : (real, other)
          let difference = zip(lines, others).enumerated().first { $0.element.0 != $0.element.1 }
          #expect(
            lines == others,
            "seek \(seekAt ?? 0), first \(opensWithFirst), \(String(describing: difference))")
        }
      }
    }
  }

  @Test("What is kept stays within the limit")
  func limit() throws {
    let limit = 1 << 20
    let starts = DecodedStarts(byteLimit: limit)
    let model = ModelledDecoders(cost: DecodeCost(frame: .zero), starts: starts, in: SimulatedRuntime())
    for path in ["media/h264-bframes.mp4", "media/h264-gops.mp4", "media/hevc-gops.mp4", "media/av1.mp4"] {
      let (stream, packets) = try units(path)
      _ = try course(stream, packets, by: model, opensWithFirst: true, seekAt: nil)
      #expect(starts.byteCount > 0)
      #expect(starts.byteCount <= limit)
    }
  }
}
