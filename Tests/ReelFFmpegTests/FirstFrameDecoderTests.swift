import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

@Suite("Decoding first frames only", .hangLimit)
struct FirstFrameDecoderTests {
  private final class Units: AccessUnitSource {
    let boxes: [SharedPacket]
    var next = 0

    init(_ boxes: [SharedPacket]) { self.boxes = boxes }

    func nextUnit() -> AccessUnit {
      guard next < boxes.count else { return .end }
      next += 1
      return .packet(boxes[next - 1])
    }

    func didOpen(_ opening: OpeningPicture) {}
  }

  /// Notes calls into the decoder.
  private final class NotingGate: DecodingGate {
    let events = Locked<[String]>([])

    func acquire() {}
    func release() {}
    func release(afterPacket: Bool) { events.withLock { $0.append(afterPacket ? "send" : "receive") } }
  }

  private static let files: [(path: String, format: ContainerFormat)] = [
    ("media/h264-bframes.mp4", .mp4), ("media/h264-bframes-no-vui.mp4", .mp4), ("media/h264-gops.mp4", .mp4),
    ("media/h264-baseline.mp4", .mp4), ("media/h264-bframes.ts", .mpegTS),
    ("media/h264-bframes-no-vui.ts", .mpegTS), ("media/h264-open-gop.ts", .mpegTS),
    ("media/h264-open-gop-mid.ts", .mpegTS), ("media/h264-interlaced-bff.ts", .mpegTS),
    ("media/h264-interlaced-tff.mp4", .mp4), ("media/h264-size-change.ts", .mpegTS),
    ("media/h264-joined-late.ts", .mpegTS), ("media/h264-intra-refresh.ts", .mpegTS),
    ("media/h264-avc3-inband.mp4", .mp4), ("media/h264-slices.mp4", .mp4),
    ("media/h264-cavlc-gops.mp4", .mp4),
    ("media/h264-one-frame.mp4", .mp4), ("media/h264-clock-wrap.ts", .mpegTS),
    ("media/editlist-bframes.mp4", .mp4), ("media/editlist.mp4", .mp4), ("media/rate-variable.mp4", .mp4),
    ("media/hevc-gops.mp4", .mp4), ("media/hevc-open-gop.mp4", .mp4), ("media/hevc-open-gop-mid.ts", .mpegTS),
    ("media/hevc-radl.mp4", .mp4), ("media/hevc-radl-mid.ts", .mpegTS), ("media/hevc-hev1-inband.mp4", .mp4),
    ("media/hevc-main10.mp4", .mp4), ("media/hevc.ts", .mpegTS), ("media/av1.mp4", .mp4),
    ("media/vp8.webm", .matroska), ("media/vp9.webm", .matroska), ("media/mpeg2.ts", .mpegTS),
    ("media/prores.mov", .mp4), ("media/mpeg4.mp4", .mp4),
  ]

  private func units(_ path: String, _ format: ContainerFormat) throws -> (StreamInfo, [SharedPacket]) {
    let container = try ContainerReader(
      source: MemorySource(Fixtures.bytes(path)), format: format, name: path, logger: silentLogger)
    var boxes: [SharedPacket] = []
    loop: while true {
      switch try container.next() {
      case .video(let box): boxes.append(box)
      case .end: break loop
      default: break
      }
    }
    return (try #require(container.video), boxes)
  }

  /// What a decoder does with a stream, step by step; after `seekAt` frames it goes back to a key frame.
  private func course(
    _ stream: StreamInfo, _ boxes: [SharedPacket], cache: FirstFrameCache?, opensWithFirst: Bool, seekAt: Int?
  ) throws -> [String] {
    let gate = NotingGate()
    var options = VideoDecoder.Options()
    options.gate = gate
    options.firstFrames = cache
    let source = Units(boxes)
    let decoder = try VideoDecoder(
      stream: stream, source: source, options: options, name: "test", logger: silentLogger)
    func note(_ text: String) { gate.events.withLock { $0.append(text) } }
    var isFirst = opensWithFirst
    var count = 0
    while true {
      switch try isFirst ? decoder.firstFrame() : decoder.nextFrame() {
      case .frame(let frame):
        isFirst = false
        count += 1
        let ticks = frame.presentationTicks.map { "\($0)" } ?? "-"
        note(
          "frame \(ticks) \(frame.durationTicks) \(frame.size) \(frame.byteCount) after \(source.next) "
            + "demand \(decoder.frameDemand?.byteCount(outsideCount: 1) ?? 0)")
        if count == seekAt {
          let key = boxes.lastIndex { $0.packet.isKey } ?? 0
          source.next = key
          try decoder.reset()
          isFirst = opensWithFirst
          note("seek")
        }
      case .needsUnit: note("needs")
      case .end:
        note("end")
        return gate.events.withLock { $0 }
      }
    }
  }

  @Test("Frames come at the same calls, with the same times and sizes", arguments: files.indices)
  func course(index: Int) throws {
    let (path, format) = Self.files[index]
    let (stream, boxes) = try units(path, format)
    let cache = FirstFrameCache()
    for seekAt in [nil, 3, 7] {
      for opensWithFirst in [true, false] {
        let real = try course(stream, boxes, cache: nil, opensWithFirst: opensWithFirst, seekAt: seekAt)
        // The second time everything that is decoded comes from the cache.
        for _ in 0..<2 {
          let other = try course(stream, boxes, cache: cache, opensWithFirst: opensWithFirst, seekAt: seekAt)
          let difference = zip(real, other).enumerated().first { $0.element.0 != $0.element.1 }
          #expect(real == other, "\(path) \(seekAt ?? 0) \(String(describing: difference))")
        }
      }
    }
  }

  @Test("What is kept stays within the limit")
  func limit() throws {
    let limit = 1 << 20
    let cache = FirstFrameCache(byteLimit: limit)
    for (path, format) in Self.files.prefix(8) {
      let (stream, boxes) = try units(path, format)
      _ = try course(stream, boxes, cache: cache, opensWithFirst: true, seekAt: nil)
      #expect(cache.byteCount <= limit)
    }
  }
}
