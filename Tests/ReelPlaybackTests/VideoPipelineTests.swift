import ReelCore
import ReelFFmpeg
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelReading
import ReelSources

@Suite("Decoding a forward buffer", .hangLimit)
struct VideoPipelineTests {
  /// A pipeline between a buffer and a ring, turned by hand.
  final class Bench {
    let session: ItemSession
    let pipeline: VideoPipeline
    var order: VideoPipeline.Order
    var lastOutcome = VideoPipeline.Outcome.idle
    /// What was noted with each frame, and how many were in the ring then.
    let notes = Locked<[(account: DecodingAccount, frameCount: Int)]>([])
    /// Of the packets that were appended.
    var keyTimes: [MediaTime] { keys.map(\.time) }
    private var keys: [MediaPacket] = []

    init(frameCapacity: Int = 1000, threads: Int = 1) {
      session = makeHandTurnedSession(frameCapacity: frameCapacity)
      order = VideoPipeline.Order(job: session.videoJob)
      let notes = notes
      pipeline = VideoPipeline(
        session: session,
        options: VideoPipeline.Options(
          name: "test", logger: silentLogger, threads: threads,
          recordDecoding: { [weak session] account in
            guard let frameCount = session?.look({ $0.frames.statistics.frameCount }) else { return }
            notes.withLock { $0.append((account, frameCount)) }
          }),
        isCancelled: { false })
    }

    /// A buffer that holds all of a clip.
    convenience init(_ path: String, frameCapacity: Int = 1000, threads: Int = 1) throws {
      self.init(frameCapacity: frameCapacity, threads: threads)
      try append(path)
      session.end([.video])
    }

    func append(_ path: String, loop: LoopIteration = LoopIteration()) throws {
      for packet in try readPackets(path, loop: loop) {
        session.append(packet)
        if packet.isKey { keys.append(packet) }
      }
    }

    func seek(to time: MediaTime, tolerance: MediaTime = .zero) throws {
      try #require(session.seekInside(to: time, tolerance: tolerance))
      order.job = session.videoJob
    }

    func turn() throws { lastOutcome = try pipeline.turn(order) }

    /// What is in the ring.
    func taken(_ count: Int = .max) throws -> [Shown] {
      var shown: [Shown] = []
      while shown.count < count, let frame = session.takeFrame() {
        shown.append(try Shown(frame))
      }
      return shown
    }

    /// Turns until the generation is drained, and gives all of it.
    func rest() throws -> [Shown] {
      var shown: [Shown] = []
      while session.head != .drained {
        try turn()
        let more = try taken()
        if more.isEmpty, lastOutcome == .idle { break }
        shown += more
      }
      return shown
    }
  }

  struct Clip: Sendable, CustomTestStringConvertible {
    let name: String
    var path: String { "media/\(name)" }
    var testDescription: String { name }

    init(_ name: String) { self.name = name }

    /// The frames by ffmpeg; transport streams begin at 0.
    func frames() throws -> [Shown] {
      let golden = try Golden(name)
      let first =
        [".ts", ".flv", ".avi", ".mpg"].contains { name.hasSuffix($0) } ? golden.frames[0].ticks : 0
      return golden.frames.map { Shown(time: golden.time($0.ticks - first), md5: $0.md5) }
    }

    static let all = [
      Clip("h264-bframes.mp4"), Clip("h264-bframes.ts"), Clip("h264-bframes-no-vui.mp4"),
      Clip("h264-bframes-no-vui.ts"), Clip("h264-open-gop.ts"), Clip("h264-open-gop-mid.ts"),
      Clip("h264-gops.mp4"), Clip("hevc-gops.mp4"), Clip("hevc-open-gop.mp4"), Clip("hevc-open-gop-mid.ts"),
      Clip("hevc-radl.mp4"), Clip("hevc-radl-mid.ts"), Clip("hevc.ts"), Clip("h264.ts"), Clip("h264.mkv"),
      Clip("h264.flv"), Clip("h264-joined-late.ts"), Clip("h264-intra-refresh.ts"),
      Clip("h264-interlaced-bff.ts"), Clip("h264-interlaced-tff.mp4"), Clip("h264-size-change.ts"),
      Clip("h264-fields.ts"), Clip("h264-fields.mkv"), Clip("h264-fields.mp4"),
      Clip("h264-clock-wrap.ts"), Clip("editlist-bframes.mp4"), Clip("editlist.mp4"), Clip("vp9.webm"),
      Clip("av1.mp4"), Clip("h264-one-frame.mp4"), Clip("h264-fragmented.mp4"), Clip("rate-variable.mp4"),
      Clip("rate-60000-1001-hevc.mp4"), Clip("container-rows.mp4"), Clip("mpeg1.mpg"), Clip("mpeg2.mpg"),
      Clip("mpeg2.ts"), Clip("mpeg4.avi"), Clip("mpeg4-packed.avi"), Clip("mpeg4.mp4"), Clip("flv1.flv"),
      Clip("vp8.webm"), Clip("mjpeg.avi"), Clip("prores.mov"),
    ]

    /// The cases in which a seek finds every frame exactly. Xvid's packed frames have no own times, so a seek may be
    /// off by one.
    static let sought = all.filter { !["h264-open-gop-mid.ts", "mpeg4-packed.avi"].contains($0.name) }
  }

  @Test(
    "A seek to a frame, or between two, shows it first and then all that follow, also while frames are decoded",
    arguments: Clip.sought, [1, 2])
  func seek(clip: Clip, threads: Int) throws {
    let frames = try clip.frames()
    let bench = try Bench(clip.path, frameCapacity: 3, threads: threads)
    try bench.turn()
    let start = try #require(bench.keyTimes.first)
    var random = SplitMix(seed: threads)
    for round in 0..<12 {
      let index = Int.random(in: 0..<frames.count, using: &random)
      guard frames[index].time >= start else { continue }
      let isBetween = round % 2 == 1 && index + 1 < frames.count
      let between = MediaTime(value: 1, timescale: 1_000_000)
      try bench.seek(to: isBetween ? frames[index + 1].time - between : frames[index].time)
      let count = round % 3 == 0 ? frames.count : Int.random(in: 1...8, using: &random)
      var shown: [Shown] = []
      while shown.count < count, bench.session.head != .drained {
        try bench.turn()
        shown += try bench.taken()
      }
      #expect(shown == Array(frames[index...].prefix(shown.count)), "frame \(index)")
      #expect(shown.count >= min(count, frames.count - index))
    }
  }

  @Test("A first packet that is not the first frame moves no seek", arguments: [-100, -33, 33, 100])
  func settledDomain(milliseconds: Int64) throws {
    let clip = Clip("h264-bframes.ts")
    let frames = try clip.frames()
    let packets = try readPackets(clip.path)
    let first = try #require(packets.first)
    // As sound does that begins so much later, or earlier.
    let offset = TimestampOffset(offset: nil)
    offset.begin(first.mediaTime + MediaTime(value: milliseconds, timescale: 1000), at: .zero)
    let span = StreamSpan(
      stream: first.span.stream, offset: offset, rung: nil, loop: LoopIteration(), followsGap: false,
      setsOffset: true)
    let bench = Bench()
    for read in packets {
      let packet = MediaPacket(
        unit: read.unit, span: span, mediaTime: read.mediaTime, duration: read.duration, isKey: read.isKey,
        byteCount: read.byteCount, isFirst: read.isFirst)
      bench.session.append(packet)
    }
    bench.session.end([.video])
    #expect(try bench.rest() == frames)
    #expect(bench.session.look({ $0.packets.level }).range?.lowerBound == .zero)
    for (index, frame) in frames.enumerated().shuffled().prefix(6) {
      try bench.seek(to: frame.time)
      #expect(try bench.rest() == Array(frames[index...]), "frame \(index)")
    }
  }

  @Test("A frame that is early by less than the tolerance will do")
  func tolerance() throws {
    let clip = Clip("h264-bframes.mp4")
    let frames = try clip.frames()
    let bench = try Bench(clip.path)
    _ = try bench.rest()
    // Key frames are the frames 0 and 15.
    try #require(frames.count > 20)
    try bench.seek(to: frames[20].time, tolerance: MediaTime(value: 5, timescale: 30))
    #expect(try bench.rest() == Array(frames[15...]))
    try bench.seek(to: frames[20].time, tolerance: MediaTime(value: 3, timescale: 30))
    #expect(try bench.rest() == Array(frames[17...]))
  }

  @Test("A small ring is filled, and never overfilled", arguments: [1, 2, 5], [1, 2])
  func smallRing(frameCapacity: Int, threads: Int) throws {
    let clip = Clip("h264-bframes.mp4")
    let frames = try clip.frames()
    let bench = try Bench(clip.path, frameCapacity: frameCapacity, threads: threads)
    var shown: [Shown] = []
    var random = SplitMix(seed: frameCapacity)
    while bench.session.head != .drained {
      try bench.turn()
      let left = frames.count - shown.count
      #expect(bench.session.look({ $0.frames.statistics.frameCount }) == min(frameCapacity, left))
      shown += try bench.taken(.random(in: 1...frameCapacity, using: &random))
    }
    #expect(shown == frames)
  }

  @Test("No more frames than the limit are decoded, until it is raised")
  func limit() throws {
    let clip = Clip("h264-bframes.ts")
    let frames = try clip.frames()
    let bench = try Bench(clip.path)
    bench.order.limit = 1
    try bench.turn()
    try bench.turn()
    #expect(bench.lastOutcome == .idle)
    var shown = try bench.taken()
    try #require(!frames.isEmpty)
    #expect(shown == [frames[0]])
    bench.order.limit = 4
    try bench.turn()
    shown += try bench.taken()
    #expect(shown == Array(frames[..<4]))
    bench.order.limit = nil
    #expect(try shown + bench.rest() == frames)
  }

  @Test("Packets that come one by one give the same frames", arguments: Clip.all, [1, 2])
  func oneByOne(clip: Clip, threads: Int) throws {
    let bench = Bench(threads: threads)
    var shown: [Shown] = []
    for packet in try readPackets(clip.path) {
      bench.session.append(packet)
      try bench.turn()
      #expect(bench.lastOutcome == .idle)
      shown += try bench.taken()
    }
    bench.session.end([.video])
    #expect(try shown + bench.rest() == clip.frames())
    #expect(bench.lastOutcome == .ended)
  }

  @Test(
    "An iteration that comes while the one before is drained is decoded without another call",
    arguments: 1...6)
  func iterationWhileDraining(missing: Int) throws {
    let clip = Clip("h264-bframes.ts")
    let frames = try clip.frames()
    // The ring is full when the decoder has been told of the end, and has not given its last frames.
    let bench = Bench(frameCapacity: frames.count - missing)
    try bench.append(clip.path)
    bench.session.end([.video])
    try bench.turn()
    let loop = LoopIteration(iteration: 1, shift: MediaTime(value: 10, timescale: 1))
    bench.session.change { state, _ in state.packets.resume(from: .video) }
    try bench.append(clip.path, loop: loop)
    bench.session.end([.video])
    var shown = try bench.taken()
    try bench.turn()
    shown += try bench.taken()
    let second = frames.map { Shown(time: $0.time + loop.shift, md5: $0.md5) }
    #expect(shown == Array((frames + second)[..<(2 * (frames.count - missing))]))
    #expect(bench.lastOutcome == .idle)
  }

  @Test("A pipeline that was parked goes on at the same frame", arguments: Clip.sought, [1, 2])
  func parking(clip: Clip, threads: Int) throws {
    let bench = try Bench(clip.path, frameCapacity: 2, threads: threads)
    var shown: [Shown] = []
    while bench.session.head != .drained {
      try bench.turn()
      shown += try bench.taken()
      _ = bench.pipeline.park()
    }
    #expect(try shown == clip.frames())
  }

  @Test("The first frame of a place takes all that is decoded to get there")
  func notesOfPlace() throws {
    let bench = try Bench("media/h264-bframes.mp4")
    try bench.turn()
    bench.notes.withLock { $0 = [] }
    try bench.seek(to: MediaTime(value: 2, timescale: 5))
    try bench.turn()
    let notes = bench.notes.withLock { $0 }
    let index = try #require(notes.lastIndex { $0.frameCount == 0 })
    try #require(index > 0)
    let account = notes[index].account
    #expect(account.firstFrameDuration == account.duration)
    #expect(notes.last?.account.firstFrameDuration == account.duration)
  }
}
