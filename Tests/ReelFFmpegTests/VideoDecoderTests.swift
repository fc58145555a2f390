import ReelCore
import ReelTestSupport
import Testing

@testable import ReelFFmpeg

@Suite("Decoding frames from units", .hangLimit)
struct VideoDecoderTests {
  /// Gives the units of a list, and between them nothing for so many calls as `pauses` says.
  private final class Units: AccessUnitSource {
    var packets: [Packet]
    var next = 0
    var pauses: () -> Int
    private(set) var openings = 0
    private var pause: Int?

    init(_ packets: [Packet], pauses: @escaping () -> Int = { 0 }) {
      self.packets = packets
      self.pauses = pauses
    }

    func nextUnit() -> Pulled<Packet> {
      let left = pause ?? pauses()
      guard left == 0 else {
        pause = left - 1
        return .wait
      }
      pause = nil
      guard next < packets.count else { return .end }
      next += 1
      return .element(packets[next - 1])
    }

    func didOpen(_ opening: OpeningPicture) { openings += 1 }
  }

  private static let clips = Clip.whole

  private func makeDecoder(
    _ stream: StreamInfo, _ units: Units, threads: Int = 1, skipsDeblocking: Bool = false
  ) throws -> VideoDecoder {
    var options = VideoDecoder.Options()
    options.threads = threads
    options.skipsDeblocking = skipsDeblocking
    return try VideoDecoder(
      stream: stream, source: units, options: options, name: "test", logger: silentLogger)
  }

  /// All frames, the first as `firstFrame()` gives it.
  private func frames(_ decoder: VideoDecoder, limit: Int = .max) throws -> (seen: [Seen], waits: Int) {
    var seen: [Seen] = []
    var waits = 0
    while seen.count < limit {
      switch try seen.isEmpty ? decoder.firstFrame() : decoder.nextFrame() {
      case .element(let frame): seen.append(try Seen(frame))
      case .wait: waits += 1
      case .end: return (seen, waits)
      }
    }
    return (seen, waits)
  }

  @Test("Without deblocking, a frame that is decoded alone differs, and no other does")
  func deblocking() throws {
    let clip = Clip("media/h264-gops.mp4")
    let (stream, packets) = try videoUnits(clip)
    let golden = try clip.golden().frames.map(\.md5)
    let seen = try frames(makeDecoder(stream, Units(packets), skipsDeblocking: true)).seen.map(\.md5)
    #expect(seen.first != golden.first)
    #expect(seen.dropFirst() == golden.dropFirst())
  }

  @Test("A pause before any unit changes no frame", arguments: clips)
  func onePause(clip: Clip) throws {
    let (stream, packets) = try videoUnits(clip)
    let golden = try clip.golden().frames.map(\.md5)
    let expected = try frames(makeDecoder(stream, Units(packets))).seen
    #expect(expected.map(\.md5) == golden)
    for place in 0...min(packets.count, 8) {
      var count = -1
      let source = Units(packets) {
        count += 1
        return count == place ? 1 : 0
      }
      let (seen, waits) = try frames(makeDecoder(stream, source))
      #expect(seen == expected)
      #expect(waits == 1, "\(place)")
    }
  }

  @Test("Pauses anywhere change no frame", arguments: Clip.sound, [1, 2])
  func manyPauses(clip: Clip, threads: Int) throws {
    let (stream, packets) = try videoUnits(clip)
    var hasPaused = false
    let source = Units(packets) {
      defer { hasPaused = true }
      return .random(in: (hasPaused ? 0 : 1)...2)
    }
    let (seen, waits) = try frames(makeDecoder(stream, source, threads: threads))
    #expect(seen.map(\.md5) == (try clip.golden()).frames.map(\.md5))
    #expect(waits > 0)
    #expect(source.openings > 0)
  }

  @Test("Pauses change no frame after a seek to where decoding can't begin")
  func pausesWithoutKeyFrame() throws {
    let (stream, packets) = try videoUnits(Clip("media/h264-intra-refresh.ts"))
    func seen(pauses: @escaping () -> Int) throws -> [Seen] {
      let source = Units(packets, pauses: pauses)
      let decoder = try makeDecoder(stream, source)
      _ = try frames(decoder, limit: 7)
      source.next = packets.count / 2
      try decoder.reset()
      return try frames(decoder).seen
    }
    #expect(try seen { 2 } == seen { 0 })
  }

  @Test("After a reset it begins anew, wherever it was", arguments: Clip.sound, [1, 2])
  func reset(clip: Clip, threads: Int) throws {
    let (stream, packets) = try videoUnits(clip)
    let golden = try clip.golden().frames.map(\.md5)
    let source = Units(packets) { Int.random(in: 0...3) / 3 }
    let decoder = try makeDecoder(stream, source, threads: threads)
    for count in [0, 1, 2, 5, golden.count, 3] {
      _ = try frames(decoder, limit: count)
      source.next = 0
      try decoder.reset()
      // As far as the next round goes.
      let few = try frames(decoder, limit: 4).seen
      #expect(few.map(\.md5) == Array(golden.prefix(4)), "after \(count)")
      source.next = 0
      try decoder.reset()
    }
    #expect(try frames(decoder).seen.map(\.md5) == golden)
  }

  @Test(
    "From any key frame on, the frames from it on are the same",
    arguments: [
      Clip("media/h264-gops.mp4"), Clip("media/hevc-gops.mp4"), Clip("media/hevc-open-gop.mp4"),
      Clip("media/hevc-radl.mp4"), Clip("media/h264-bframes.ts"), Clip("media/h264-bframes.mp4"),
    ])
  func keyFrames(clip: Clip) throws {
    let (stream, packets) = try videoUnits(clip)
    let golden = try clip.golden()
    let source = Units(packets)
    let decoder = try makeDecoder(stream, source)
    let keys = packets.indices.filter { packets[$0].isKey }
    try #require(keys.count > 1)
    for key in keys + keys.reversed() {
      source.next = key
      try decoder.reset()
      let ticks = try #require(packets[key].ticks)
      let seen = try frames(decoder).seen.filter { $0.ticks ?? 0 >= ticks }
      #expect(seen.map(\.md5) == golden.frames.filter { $0.ticks >= ticks }.map(\.md5), "unit \(key)")
    }
  }

  @Test("The units before the first that decoding can begin at are let go after a reset")
  func randomAccess() throws {
    let clip = Clip("media/hevc-gops.mp4")
    let (stream, packets) = try videoUnits(clip)
    let golden = try clip.golden().frames.map(\.md5)
    let source = Units(packets)
    let decoder = try makeDecoder(stream, source)
    _ = try frames(decoder, limit: 2)
    // Three GOPs of 12 frames.
    source.next = 5
    try decoder.reset()
    #expect(try frames(decoder).seen.map(\.md5) == Array(golden[12...]))
    #expect(decoder.damagedCount == 0)
  }

  @Test("Cancelled work ends with a cancellation, and goes on after it")
  func cancelled() throws {
    let clip = Clip("media/h264-gops.mp4")
    let (stream, packets) = try videoUnits(clip)
    let isCancelled = Locked(true)
    var options = VideoDecoder.Options()
    options.isCancelled = { isCancelled.withLock { $0 } }
    let decoder = try VideoDecoder(
      stream: stream, source: Units(packets), options: options, name: "test", logger: silentLogger)
    #expect(throws: CancellationError.self) { try frames(decoder) }
    isCancelled.withLock { $0 = false }
    #expect(try frames(decoder).seen.map(\.md5) == (try clip.golden()).frames.map(\.md5))
  }
}
