import ReelCore
import ReelTesting
import ReelTestSupport
import Testing

@testable import ReelFFmpeg
@testable import ReelPlayback

@Suite("Frame rings", .hangLimit)
struct FrameRingTests {
  private let maker: FrameMaker

  init() throws { maker = try FrameMaker() }

  private func time(_ index: Int) -> MediaTime { MediaTime(value: Int64(index), timescale: 60) }

  /// What a test compares of an offer.
  private enum Outcome: Equatable {
    case accepted
    case full(MediaTime)
    case stale
  }

  private func offer(_ index: Int, to ring: FrameRing, generation: Int = 0, isLarge: Bool = false) throws
    -> Outcome
  {
    switch ring.offer(try maker.make(time(index), isLarge: isLarge), generation: generation) {
    case .accepted: .accepted
    case .full(let frame): .full(frame.time)
    case .stale: .stale
    }
  }

  // MARK: The rules

  @Test("Frames come out as they went in, until it is drained")
  func order() throws {
    let ring = FrameRing(frameCapacity: 3, byteCapacity: .max / 2)
    #expect(ring.head() == .empty)
    for index in 0..<3 { #expect(try offer(index, to: ring) == .accepted) }
    #expect(try offer(3, to: ring) == .full(time(3)))
    #expect(ring.head() == .frame(time(0), following: time(1)))
    for index in 0..<3 { #expect(ring.take(generation: 0)?.time == time(index)) }
    #expect(ring.take(generation: 0)?.time == nil)
    #expect(try offer(3, to: ring) == .accepted)
    ring.finish(generation: 0)
    #expect(ring.head() == .frame(time(3), following: nil))
    #expect(try offer(4, to: ring) == .stale)
    #expect(ring.take(generation: 0)?.time == time(3))
    #expect(ring.head() == .drained)
    #expect(ring.take(generation: 0)?.time == nil)
    let statistics = ring.statistics
    #expect(statistics.producerWaitCount == 1)
    #expect(statistics.consumerWaitCount == 2)
    #expect(statistics.highWaterFrameCount == 3)
    #expect(statistics.highWaterByteCount == 3 * maker.smallByteCount)
  }

  @Test("There is always room for one frame, whatever its size")
  func oversized() throws {
    let ring = FrameRing(frameCapacity: 0, byteCapacity: 1)
    #expect(try offer(0, to: ring, isLarge: true) == .accepted)
    #expect(try offer(1, to: ring) == .full(time(1)))
    #expect(ring.statistics.byteCount == maker.largeByteCount)
    #expect(ring.take(generation: 0)?.time == time(0))
    #expect(try offer(1, to: ring, isLarge: true) == .accepted)
  }

  @Test("A flush begins a new generation, and what belongs to another does nothing")
  func generations() throws {
    let ring = FrameRing(frameCapacity: 2, byteCapacity: .max / 2)
    #expect(try offer(0, to: ring) == .accepted)
    ring.finish(generation: 0)
    #expect(ring.flush() == 1)
    #expect(ring.generation == 1)
    #expect(ring.head() == .empty)
    #expect(try offer(1, to: ring, generation: 0) == .stale)
    ring.finish(generation: 0)
    #expect(ring.head() == .empty)
    #expect(try offer(2, to: ring, generation: 1) == .accepted)
    #expect(ring.take(generation: 0)?.time == nil)
    #expect(ring.take(generation: 1)?.time == time(2))
    #expect(try offer(3, to: ring, generation: 2) == .stale)
    #expect(ring.statistics.frameCount == 0)
  }

  @Test("The bytes of a frame are those of its planes at least")
  func bytes() throws {
    let frame = try maker.make(.zero)
    let planes = (0..<frame.decoded.planeCount).compactMap { index in
      frame.decoded.withPlane(index) { _, rows, _, stride in rows * stride }
    }
    #expect(planes.count == 3)
    #expect(frame.decoded.byteCount >= planes.reduce(0, +))
    #expect(frame.decoded.byteCount < 4 * planes.reduce(0, +))
    #expect(maker.largeByteCount > maker.smallByteCount)
  }

  @Test("Frames are freed by a flush, and with the ring")
  func release() throws {
    final class Reference { weak var object: AnyObject? }
    for flushes in [true, false] {
      let references = (0..<2).map { _ in Reference() }
      var ring: FrameRing? = FrameRing(frameCapacity: 8, byteCapacity: .max / 2)
      do {
        let maker = try FrameMaker()
        for (reference, object) in zip(references, maker.heldByAll) { reference.object = object }
        for index in 0..<8 {
          _ = ring?.offer(try maker.make(time(index), isLarge: index % 2 == 0), generation: 0)
        }
        _ = ring?.offer(try maker.make(time(9)), generation: 0)
        _ = ring?.offer(try maker.make(time(9)), generation: 1)
        _ = ring?.take(generation: 0)
      }
      #expect(references.allSatisfy { $0.object != nil })
      if flushes { ring?.flush() } else { ring = nil }
      #expect(references.allSatisfy { $0.object == nil })
    }
  }

  // MARK: Against a model

  /// The rules of a ring, as plainly as can be.
  private struct Model {
    var frames: [(time: MediaTime, byteCount: Int)] = []
    var generation = 0
    var isFinished = false
    var refused: Int?
    var consumerWaits = false
    var statistics: FrameRing.Statistics
    var roomCalls = 0
    var frameCalls = 0

    func hasRoom(_ byteCount: Int) -> Bool {
      frames.isEmpty
        || frames.count < statistics.frameCapacity
          && frames.map(\.byteCount).reduce(byteCount, +) <= statistics.byteCapacity
    }

    mutating func count() {
      statistics.frameCount = frames.count
      statistics.byteCount = frames.map(\.byteCount).reduce(0, +)
      statistics.highWaterFrameCount = max(statistics.highWaterFrameCount, statistics.frameCount)
      statistics.highWaterByteCount = max(statistics.highWaterByteCount, statistics.byteCount)
    }

    mutating func offer(_ time: MediaTime, _ byteCount: Int, _ generation: Int) -> Outcome {
      guard generation == self.generation, !isFinished else { return .stale }
      guard hasRoom(byteCount) else {
        statistics.producerWaitCount += 1
        refused = byteCount
        return .full(time)
      }
      refused = nil
      frames.append((time, byteCount))
      count()
      tellConsumer()
      return .accepted
    }

    mutating func finish(_ generation: Int) {
      guard generation == self.generation, !isFinished else { return }
      isFinished = true
      tellConsumer()
    }

    mutating func head() -> FrameRing.Head {
      if let first = frames.first {
        return .frame(first.time, following: frames.dropFirst().first?.time)
      }
      return recordEmpty() ? .empty : .drained
    }

    mutating func take(_ generation: Int) -> MediaTime? {
      guard generation == self.generation else { return nil }
      guard !frames.isEmpty else {
        _ = recordEmpty()
        return nil
      }
      let time = frames.removeFirst().time
      count()
      tellProducer()
      return time
    }

    mutating func flush() {
      frames = []
      generation += 1
      isFinished = false
      count()
      tellProducer()
    }

    private mutating func recordEmpty() -> Bool {
      guard !isFinished else { return false }
      statistics.consumerWaitCount += 1
      consumerWaits = true
      return true
    }

    private mutating func tellConsumer() {
      if consumerWaits { frameCalls += 1 }
      consumerWaits = false
    }

    private mutating func tellProducer() {
      guard let byteCount = refused, hasRoom(byteCount) else { return }
      refused = nil
      roomCalls += 1
    }
  }

  @Test("Any sequence of calls does what the plain model does", arguments: 0..<24)
  func model(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    let frameCapacity = Int.random(in: 1...6, using: &random)
    let byteCapacity = Int.random(in: 1...(3 * maker.largeByteCount), using: &random)
    let ring = FrameRing(frameCapacity: frameCapacity, byteCapacity: byteCapacity)
    let calls = Locked((room: 0, frame: 0))
    ring.setHandlers(
      onRoom: {
        // Called outside the lock: the ring can be used.
        _ = ring.statistics
        calls.withLock { $0.room += 1 }
      },
      onFrame: {
        _ = ring.generation
        calls.withLock { $0.frame += 1 }
      })
    defer { ring.setHandlers(onRoom: {}, onFrame: {}) }
    var model = Model(statistics: ring.statistics)
    for step in 0..<3000 {
      let isPast = Int.random(in: 0..<10, using: &random) == 0
      let generation = model.generation - (isPast ? 1 : 0)
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<45:
        let isLarge = Bool.random(using: &random)
        let expected = model.offer(
          time(step), isLarge ? maker.largeByteCount : maker.smallByteCount, generation)
        #expect(try offer(step, to: ring, generation: generation, isLarge: isLarge) == expected)
      case 45..<80:
        #expect(ring.take(generation: generation)?.time == model.take(generation))
      case 80..<95:
        #expect(ring.head() == model.head())
      case 95..<98:
        ring.finish(generation: generation)
        model.finish(generation)
      default:
        model.flush()
        #expect(ring.flush() == model.generation)
      }
      #expect(ring.statistics == model.statistics)
      let seen = calls.withLock { $0 }
      try #require(seen == (model.roomCalls, model.frameCalls), "after step \(step)")
    }
  }

  // MARK: Two threads

  /// The consumer's side of a film that is played by two task loops.
  private struct Received: Equatable {
    var generation = -1
    var count = 0
  }

  @Test(
    "Two threads and random flushes: in order, none lost, none of an earlier generation, nothing left",
    arguments: [(1, 1), (3, 8), (16, 4)])
  func twoThreads(frameCapacity: Int, byteCapacityInFrames: Int) async throws {
    let length = 400
    let maker = maker
    let ring = FrameRing(
      frameCapacity: frameCapacity, byteCapacity: byteCapacityInFrames * maker.largeByteCount)
    let clock = ManualMonotonicClock()
    let offered = Locked((generation: -1, count: 0))
    let producer = TaskLoop(named: "producer", clock: clock) {
      let generation = ring.generation
      var next = offered.withLock { $0.generation == generation ? $0.count : 0 }
      defer { offered.withLock { $0 = (generation, next) } }
      while next < length {
        let time = MediaTime(value: Int64(generation * length + next), timescale: 60)
        guard let frame = try? maker.make(time, isLarge: next % 3 == 0) else {
          Issue.record("no memory")
          return .idle
        }
        switch ring.offer(frame, generation: generation) {
        case .accepted: next += 1
        case .full: return .idle
        case .stale: return .again
        }
      }
      ring.finish(generation: generation)
      return ring.generation == generation ? .idle : .again
    }
    let received = ObservedProperty(Received())
    let drained = ObservedProperty(-1)
    let consumer = TaskLoop(named: "consumer", clock: clock) {
      while true {
        let generation = ring.generation
        switch ring.head() {
        case .empty: return .idle
        case .drained:
          // The head may be that of a later generation, but not of an earlier one.
          guard ring.generation == generation else { continue }
          #expect(received.value == Received(generation: generation, count: length))
          drained.set(generation)
          return .idle
        case .frame(let first, let following):
          if let following { #expect(following > first) }
          guard let frame = ring.take(generation: generation) else { continue }
          received.update {
            if $0.generation != generation { ($0.generation, $0.count) = (generation, 0) }
            #expect(frame.time == MediaTime(value: Int64(generation * length + $0.count), timescale: 60))
            $0.count += 1
          }
        }
      }
    }
    ring.setHandlers(onRoom: { producer.wake() }, onFrame: { consumer.wake() })
    producer.wake()
    consumer.wake()
    for round in 1...60 {
      // None at all, or so many of the present generation.
      let target = Int.random(in: 0...(length / 4))
      for await received in received.values where target == 0 || received.generation == round - 1 {
        if received.count >= target { break }
      }
      #expect(ring.flush() == round)
      // As a player does: what each side had found of the old generation says nothing of the new one.
      producer.wake()
      consumer.wake()
    }
    for await generation in drained.values where generation == 60 { break }
    producer.stop()
    consumer.stop()
    await producer.waitUntilStopped()
    await consumer.waitUntilStopped()
    ring.setHandlers(onRoom: {}, onFrame: {})
    let statistics = ring.statistics
    #expect(statistics.frameCount == 0)
    #expect(statistics.byteCount == 0)
    #expect((1...frameCapacity).contains(statistics.highWaterFrameCount))
    #expect(statistics.highWaterByteCount <= statistics.byteCapacity)
    #expect(statistics.producerWaitCount > 0)
    #expect(received.value == Received(generation: 60, count: length))
  }
}
