import ReelCore
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelReading
@testable import ReelSources

@Suite("Forward buffers")
struct ForwardBufferTests {
  private let maker: PacketMaker

  init() throws { maker = try PacketMaker() }

  private func time(_ tenths: Int) -> MediaTime { MediaTime(value: Int64(tenths), timescale: 10) }

  /// A buffer that can be used in expectations.
  private final class Bench {
    var buffer: ForwardBuffer

    init(_ limits: ForwardBuffer.Limits) { buffer = ForwardBuffer(limits: limits) }

    var level: ForwardBuffer.Level { buffer.level }
    var position: MediaTime? { buffer.position }
    var byteCount: Int { buffer.byteCount }
    func wantsMore(_ kind: TrackKind) -> Bool { buffer.wantsMore(kind) }
    func takeRefill(_ kind: TrackKind) -> Bool { buffer.takeRefill(kind) }
    func isAudioBehind(_ time: MediaTime) -> Bool { buffer.isAudioBehind(time) }
    func seek(to time: MediaTime) -> Set<TrackKind> { buffer.seek(to: time) }
    func rewindToKey(before time: MediaTime) -> Bool { buffer.rewindToKey(before: time) }
    func peekNext(_ kind: TrackKind) -> Pulled<MediaPacket> { buffer.peekNext(kind) }
    func next(_ kind: TrackKind, of span: StreamSpan? = nil) -> Pulled<MediaPacket> {
      buffer.next(kind, of: span)
    }
  }

  private func makeBuffer(target: Int = 100, byteCount: Int = .max / 4) -> Bench {
    Bench(ForwardBuffer.Limits(target: time(target), byteCount: byteCount))
  }

  /// Packets of 100 ms and 10 bytes; every fourth is a key.
  private func append(
    _ range: Range<Int>, _ kind: TrackKind = .video, to bench: Bench, iteration: Int = 0,
    byteCount: Int = 10
  ) throws {
    let span = maker.makeSpan(kind, iteration: iteration)
    for index in range {
      let packet = try maker.make(
        time(index), lasting: time(1), of: span, isKey: kind == .audio || index % 4 == 0, byteCount: byteCount
      )
      bench.buffer.append(packet)
    }
  }

  private func isNone(_ next: Pulled<MediaPacket>) -> Bool { if case .wait = next { true } else { false } }
  private func isEnd(_ next: Pulled<MediaPacket>) -> Bool { if case .end = next { true } else { false } }
  private func packet(_ next: Pulled<MediaPacket>) -> MediaPacket? {
    if case .element(let packet) = next { packet } else { nil }
  }

  @Test("A packet of another span ends the one that is decoded, and stays")
  func spans() throws {
    let buffer = makeBuffer()
    try append(0..<1, to: buffer)
    try append(1..<2, to: buffer)
    let span = try #require(packet(buffer.next(.video))).span
    #expect(isEnd(buffer.next(.video, of: span)))
    #expect(packet(buffer.peekNext(.video))?.time == time(1))
    #expect(packet(buffer.next(.video))?.time == time(1))
  }

  @Test("It is full at its target in time or bytes, and is refilled below a share of both")
  func levels() throws {
    let buffer = makeBuffer(target: 8, byteCount: 200)
    #expect(buffer.wantsMore(.video))
    #expect(!buffer.takeRefill(.video))
    try append(0..<8, to: buffer)
    #expect(buffer.level.isFull)
    #expect(buffer.level.ahead == time(8))
    #expect(!buffer.wantsMore(.video))
    #expect(!buffer.takeRefill(.video))
    buffer.buffer.setPosition(time(1))
    #expect(!buffer.level.isFull)
    // 0.7 s is not below three quarters of the target.
    #expect(!buffer.takeRefill(.video))
    #expect(!buffer.wantsMore(.video))
    buffer.buffer.setPosition(time(3))
    #expect(buffer.takeRefill(.video))
    #expect(!buffer.takeRefill(.video))
    #expect(buffer.wantsMore(.video))
    try append(8..<9, to: buffer, byteCount: 200)
    #expect(!buffer.wantsMore(.video))
    for _ in 0..<8 { _ = buffer.next(.video) }
    buffer.buffer.setPosition(time(7))
    #expect(!buffer.takeRefill(.video))
    _ = buffer.next(.video)
    #expect(buffer.takeRefill(.video))
    #expect(buffer.buffer.highWaterByteCount == 280)
  }

  @Test("The level is that of the stream that has less, where sound has a loader of its own")
  func separateAudio() throws {
    let buffer = makeBuffer(target: 8)
    buffer.buffer.setAudioLoader(.audio)
    try append(0..<10, to: buffer)
    #expect(buffer.level.ahead == .zero)
    #expect(!buffer.level.isFull)
    #expect(buffer.isAudioBehind(time(1)))
    try append(0..<5, .audio, to: buffer)
    #expect(buffer.level.ahead == time(5))
    #expect(!buffer.isAudioBehind(time(5)))
    #expect(buffer.isAudioBehind(time(6)))
    buffer.buffer.end([.video])
    #expect(!buffer.level.isComplete)
    buffer.buffer.end([.audio])
    #expect(buffer.level.isComplete)
    #expect(buffer.level.ahead == time(10))
    #expect(!buffer.isAudioBehind(time(6)))
  }

  @Test("With sound after its video in a file, it is full when half its target of sound is there too")
  func muxedAudioBehind() throws {
    let buffer = makeBuffer(target: 8)
    buffer.buffer.setAudioLoader(.video)
    try append(0..<10, to: buffer)
    #expect(buffer.wantsMore(.video) && !buffer.level.isFull)
    try append(0..<3, .audio, to: buffer)
    #expect(buffer.wantsMore(.video))
    try append(3..<4, .audio, to: buffer)
    #expect(!buffer.wantsMore(.video) && buffer.level.isFull)
    // It continues before the sound runs out.
    buffer.buffer.setPosition(time(1))
    #expect(!buffer.takeRefill(.video))
    buffer.buffer.setPosition(time(3))
    #expect(buffer.takeRefill(.video))
    // Sound that is ten seconds behind is taken to be absent.
    try append(10..<103, to: buffer)
    #expect(buffer.wantsMore(.video))
    try append(103..<104, to: buffer)
    #expect(!buffer.wantsMore(.video))
  }

  @Test("Sound that has ended, or is not wanted, is not waited for")
  func missingMuxedAudio() throws {
    let buffer = makeBuffer(target: 8)
    try append(0..<10, to: buffer)
    #expect(!buffer.wantsMore(.video))
    buffer.buffer.setAudioLoader(.video)
    buffer.buffer.fill()
    #expect(buffer.wantsMore(.video))
    buffer.buffer.end([.audio])
    #expect(!buffer.wantsMore(.video))
  }

  @Test("It waits for ten seconds of sound that never comes, and only once")
  func absentMuxedAudio() throws {
    let buffer = makeBuffer(target: 8)
    buffer.buffer.setAudioLoader(.video)
    try append(0..<99, to: buffer)
    #expect(buffer.wantsMore(.video))
    try append(99..<100, to: buffer)
    #expect(!buffer.wantsMore(.video))
    for _ in 0..<100 { _ = buffer.next(.video) }
    buffer.buffer.setPosition(time(95))
    #expect(buffer.takeRefill(.video))
    try append(100..<103, to: buffer)
    #expect(!buffer.wantsMore(.video))
  }

  @Test("A seek inside the video that sound does not cover loads the sound alone")
  func seekForAudio() throws {
    let buffer = makeBuffer()
    buffer.buffer.setAudioLoader(.audio)
    try append(0..<10, to: buffer)
    try append(0..<5, .audio, to: buffer)
    #expect(buffer.seek(to: time(4)) == [])
    #expect(packet(buffer.next(.audio))?.time == time(4))
    #expect(packet(buffer.next(.video))?.time == time(4))
    #expect(buffer.seek(to: time(5)) == [.audio])
    #expect(isNone(buffer.next(.audio)))
    #expect(packet(buffer.next(.video))?.time == time(4))
    try append(5..<7, .audio, to: buffer)
    #expect(buffer.seek(to: time(20)) == [.video, .audio])
    #expect(buffer.byteCount == 0)
    #expect(buffer.position == time(20))
  }

  @Test("Sound that is muxed is sought with the video, and never loaded alone")
  func muxedAudio() throws {
    let buffer = makeBuffer()
    try append(0..<10, to: buffer)
    try append(0..<5, .audio, to: buffer)
    #expect(buffer.seek(to: time(3)) == [])
    #expect(packet(buffer.next(.audio))?.time == time(3))
    #expect(buffer.seek(to: time(9)) == [])
    #expect(isNone(buffer.next(.audio)))
    #expect(buffer.seek(to: time(10)) == [.video, .audio])
  }

  @Test("After a reset, playback begins with the first packet that comes")
  func reset() throws {
    let buffer = makeBuffer()
    try append(0..<6, to: buffer)
    buffer.buffer.reset(position: nil)
    #expect(buffer.position == nil)
    #expect(isNone(buffer.next(.video)))
    try append(7..<8, to: buffer)
    #expect(buffer.position == time(7))
  }

  @Test("What is dropped is kept until its owner takes it")
  func released() throws {
    let buffer = makeBuffer()
    try append(0..<6, to: buffer)
    #expect(buffer.buffer.takeReleased().isEmpty)
    for _ in 0..<5 { _ = buffer.next(.video) }
    buffer.buffer.setPosition(time(4))
    #expect(buffer.buffer.takeReleased().map(\.time) == (0..<4).map(time))
    #expect(buffer.seek(to: time(20)) == [.video, .audio])
    #expect(buffer.buffer.takeReleased().map(\.time) == [time(4), time(5)])
    #expect(buffer.buffer.takeReleased().isEmpty)
  }

  @Test("Sound is let go when it is dropped, and loaded again")
  func dropAudio() throws {
    let buffer = makeBuffer(target: 4)
    buffer.buffer.setAudioLoader(.audio)
    try append(0..<5, .audio, to: buffer)
    #expect(!buffer.wantsMore(.audio))
    buffer.buffer.dropAudio(isSeparate: true)
    #expect(buffer.byteCount == 0)
    #expect(buffer.wantsMore(.audio))
  }

  // MARK: Bytes

  @Test("Packets that all have the same time fill it, by their durations and by their bytes")
  func equalTimes() throws {
    for (byteCount, limit) in [(10, Int.max / 4), (50, 1000)] {
      let buffer = makeBuffer(target: 8, byteCount: limit)
      var count = 0
      while buffer.wantsMore(.video) {
        try append(0..<1, to: buffer, byteCount: byteCount)
        count += 1
        try #require(count < 100)
      }
      #expect(count == (limit == 1000 ? 20 : 32))
      #expect(buffer.level.isFull && !buffer.level.isConsumed)
      // The decoder takes them, although none is ever shown.
      for _ in 0..<500 {
        if buffer.takeRefill(.video) || buffer.wantsMore(.video) {
          try append(0..<1, to: buffer, byteCount: byteCount)
        }
        _ = buffer.next(.video)
      }
      if limit == 1000 { #expect(buffer.byteCount <= 1500 + byteCount) }
      buffer.buffer.setPosition(time(0))
    }
  }

  @Test("Packets without a duration fill it by their bytes")
  func noDuration() throws {
    let buffer = makeBuffer(target: 8, byteCount: 1000)
    let span = maker.makeSpan()
    for _ in 0..<1000 where buffer.wantsMore(.video) {
      buffer.buffer.append(try maker.make(time(0), lasting: .zero, of: span, byteCount: 30))
    }
    #expect(buffer.byteCount == 1020)
  }

  @Test("What one kind fills does not keep the other from its next packet")
  func fullOfOneKind() throws {
    for full in TrackKind.allCases {
      let starved: TrackKind = full == .video ? .audio : .video
      let buffer = makeBuffer(target: 1000, byteCount: 1000)
      buffer.buffer.setAudioLoader(.audio)
      // A giant packet.
      try append(0..<1, full, to: buffer, byteCount: 5000)
      #expect(!buffer.wantsMore(full) && buffer.wantsMore(starved))
      for index in 0..<20 {
        try append(index..<index + 1, starved, to: buffer)
        #expect(!buffer.wantsMore(starved))
        #expect(packet(buffer.next(starved))?.time == time(index))
        #expect(buffer.takeRefill(starved))
      }
      #expect(!buffer.takeRefill(full))
      _ = buffer.next(full)
      #expect(buffer.takeRefill(full))
    }
  }

  @Test("Sound that a file has long before its video is dropped, and told once")
  func overflow() throws {
    let buffer = makeBuffer(target: 8, byteCount: 1000)
    buffer.buffer.setAudioLoader(.video)
    for index in 0..<300 {
      #expect(buffer.wantsMore(.video))
      try append(index..<index + 1, .audio, to: buffer)
      #expect(buffer.byteCount <= 1000)
      #expect(buffer.buffer.takeOverflow() == nil)
    }
    try append(0..<1, to: buffer)
    #expect(buffer.buffer.takeOverflow() == time(0)..<time(200))
    #expect(buffer.buffer.takeOverflow() == nil)
    #expect(!buffer.wantsMore(.video))
    #expect(packet(buffer.next(.audio))?.time == time(200))
  }

  // MARK: - A model

  /// The same as a list that is searched from one end to the other.
  private struct Model {
    struct Entry {
      var id: Int
      var start: Int
      var isKey: Bool
      var byteCount: Int
      var iteration: Int
      var isTaken = false
    }

    var entries: [Entry] = []
    var position: Int?
    var hasEnded = false
    var nextStart = 0
    var iteration = 0

    var byteCount: Int { entries.reduce(0) { $0 + $1.byteCount } }
    var pending: Int { entries.reduce(0) { $0 + ($1.isTaken ? 0 : $1.byteCount) } }
    var next: Entry? { entries.first { !$0.isTaken } }
    var end: Int? { entries.map { $0.start + 1 }.max() }

    /// The entry that decoding of `time` begins with.
    func key(for time: Int) -> Int? { entries.lastIndex { $0.isKey && $0.start <= time } }

    mutating func dropTaken(beyond byteLimit: Int) {
      while byteCount - pending > byteLimit, entries.first?.isTaken == true { entries.removeFirst() }
    }

    mutating func place(at index: Int) {
      for other in entries.indices { entries[other].isTaken = other < index }
    }
  }

  @Test("It is what a plain list would be, whatever is done with it", arguments: 0..<60)
  func model(seed: Int) throws {
    var random = SplitMix(seed: seed)
    let byteLimit = seed % 3 == 0 ? 400 : Int.max / 4
    let buffer = makeBuffer(byteCount: byteLimit)
    var model = Model()
    var spans = [maker.makeSpan()]
    var lastEnd: Int?
    for _ in 0..<400 {
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<7 where !model.hasEnded:
        // A GOP of a key frame and B-frames: 0 3 1 2 in presentation order, or of a key frame alone.
        let order = Bool.random(using: &random) ? [0, 3, 1, 2] : [0]
        for place in order {
          let byteCount = Int.random(in: 1...40, using: &random)
          let start = model.nextStart + place
          let packet = try maker.make(
            time(start), lasting: time(1), of: spans[model.iteration], isKey: place == 0,
            byteCount: byteCount)
          buffer.buffer.append(packet)
          model.entries.append(
            Model.Entry(
              id: start, start: start, isKey: place == 0, byteCount: byteCount, iteration: model.iteration))
          if model.position == nil { model.position = start }
          lastEnd = max(lastEnd ?? 0, start + 1)
        }
        model.nextStart += order.count
      case 7..<13:
        let next = buffer.next(.video)
        if let expected = model.entries.firstIndex(where: { !$0.isTaken }) {
          #expect(packet(next)?.time == time(model.entries[expected].start))
          model.entries[expected].isTaken = true
          model.dropTaken(beyond: byteLimit / 2)
        } else {
          #expect(model.hasEnded ? isEnd(next) : isNone(next))
        }
      case 13, 14:
        guard let position = model.position, let end = model.end else { break }
        let new = Int.random(in: position...max(position, end), using: &random)
        buffer.buffer.setPosition(time(new))
        model.position = new
        let taken = model.entries.prefix { $0.isTaken }
        let keep = taken.lastIndex { $0.isKey && $0.start <= new } ?? 0
        model.entries.removeFirst(keep)
        model.dropTaken(beyond: byteLimit / 2)
      case 15, 16:
        let target = Int.random(in: -2...(model.nextStart + 3), using: &random)
        let reload = buffer.seek(to: time(target))
        model.position = target
        if let key = model.key(for: target), target < lastEnd ?? 0 || model.hasEnded {
          #expect(reload.isEmpty)
          model.place(at: key)
          #expect(
            packet(buffer.peekNext(.video))?.time
              == time(model.entries[key].start))
        } else {
          #expect(reload == [.video, .audio])
          model.entries = []
          model.hasEnded = false
          model.nextStart = max(target, 0)
          lastEnd = nil
        }
      case 17:
        guard let time = model.entries.last(where: \.isTaken)?.start else { break }
        let key = model.entries.lastIndex { $0.isTaken && $0.isKey && $0.start <= time }
        #expect(
          buffer.rewindToKey(before: self.time(time))
            == (key != nil))
        if let key { model.place(at: key) }
      case 18:
        buffer.buffer.end([.video])
        model.hasEnded = true
        if Bool.random(using: &random) {
          // The item begins anew.
          buffer.buffer.resume(from: .video)
          model.hasEnded = false
          model.iteration += 1
          spans.append(maker.makeSpan(iteration: model.iteration))
        }
      default:
        guard let first = model.entries.first else { break }
        buffer.buffer.drop(after: first.iteration)
        model.entries.removeAll { $0.iteration > first.iteration }
        model.hasEnded = true
        lastEnd = model.end
        model.nextStart = model.end ?? model.nextStart
      }
      let level = buffer.level
      #expect(level.byteCount == model.byteCount)
      #expect(buffer.byteCount == model.byteCount)
      #expect(level.isConsumed == (model.next == nil))
      #expect(level.isComplete == model.hasEnded)
      #expect(buffer.position == model.position.map(time))
      #expect(buffer.buffer.end(of: .video) == lastEnd.map(time))
      let ahead = max(0, (lastEnd ?? 0) - (model.position ?? 0))
      #expect(level.ahead == (lastEnd == nil ? .zero : time(ahead)))
      #expect(level.isFull == (model.pending >= byteLimit || level.ahead >= time(100)))
      #expect(
        packet(buffer.peekNext(.video))?.time
          == model.next.map { time($0.start) })
    }
  }
}
