import ReelCore
import ReelTesting
import ReelTestSupport
import Testing

@testable import ReelFFmpeg
@testable import ReelPlayback
import ReelReading

@Suite("Frame rings", .hangLimit)
struct FrameRingTests {
  private let maker: FrameMaker

  init() throws { maker = try FrameMaker() }

  private func time(_ index: Int) -> MediaTime { MediaTime(value: Int64(index), timescale: 60) }

  /// A ring that can be used in expectations.
  private final class Bench {
    var ring: FrameRing
    private let maker: FrameMaker

    init(frameCapacity: Int, byteCapacity: Int = .max / 2, maker: FrameMaker) {
      ring = FrameRing(frameCapacity: frameCapacity, byteCapacity: byteCapacity)
      self.maker = maker
    }

    var head: FrameRing.Head { ring.head }
    var statistics: FrameRing.Statistics { ring.statistics }
    var takenTime: MediaTime? { ring.takenTime }
    func take() -> MediaTime? { ring.take()?.time }
    func takeRoom() -> Bool { ring.takeRoom() }
    func free() { _ = ring.takeReleased() }

    /// Returns true if there was room.
    func offer(_ index: Int, isLarge: Bool = false) -> Bool {
      let time = MediaTime(value: Int64(index), timescale: 60)
      return ring.offer(maker.make(time, isLarge: isLarge))
    }
  }

  // MARK: The rules

  @Test("What is cleared can come again; after a flush others come")
  func flush() throws {
    let ring = Bench(frameCapacity: 3, maker: maker)
    for index in 0..<3 { #expect(ring.offer(index)) }
    #expect(ring.take() == time(0))
    ring.ring.finish()
    ring.ring.clear()
    #expect(ring.head == .empty)
    #expect(ring.takenTime == time(0))
    #expect(ring.statistics.frameCount == 0)
    #expect(ring.offer(1))
    ring.ring.flush()
    #expect(ring.takenTime == nil)
  }

  @Test("The bytes of a frame are those of its planes at least")
  func bytes() throws {
    let frame = maker.make(.zero)
    let planes = frame.withPlanes { planes in planes.map { $0.rowCount * $0.stride } }
    #expect(planes.count == 3)
    #expect(frame.byteCount >= planes.reduce(0, +))
    #expect(frame.byteCount < 4 * planes.reduce(0, +))
    #expect(maker.largeByteCount > maker.smallByteCount)
  }

  @Test("Flushed frames are freed when they are released, the others with the ring")
  func release() throws {
    final class Reference { weak var object: AnyObject? }
    for flushes in [true, false] {
      let references = (0..<2).map { _ in Reference() }
      var ring: Bench?
      do {
        let maker = try FrameMaker()
        for (reference, object) in zip(references, maker.heldByAll) { reference.object = object }
        var made = FrameRing(frameCapacity: 8, byteCapacity: .max / 2)
        for index in 0..<9 { _ = made.offer(maker.make(time(index), isLarge: index % 2 == 0)) }
        _ = made.take()
        let bench = Bench(frameCapacity: 1, maker: self.maker)
        bench.ring = made
        ring = bench
      }
      #expect(references.allSatisfy { $0.object != nil })
      if flushes {
        ring?.ring.flush()
        #expect(references.allSatisfy { $0.object != nil })
        ring?.free()
      } else {
        ring = nil
      }
      #expect(references.allSatisfy { $0.object == nil })
    }
  }

  // MARK: Against a model

  /// The rules of a ring, as plainly as can be.
  private struct Model {
    var frames: [(time: MediaTime, byteCount: Int)] = []
    var isFinished = false
    var refused: Int?
    var statistics: FrameRing.Statistics

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

    mutating func offer(_ time: MediaTime, _ byteCount: Int) -> Bool {
      guard hasRoom(byteCount) else {
        refused = byteCount
        return false
      }
      refused = nil
      frames.append((time, byteCount))
      count()
      return true
    }

    var head: FrameRing.Head {
      guard let first = frames.first else { return isFinished ? .drained : .empty }
      return .frame(first.time, following: frames.dropFirst().first?.time)
    }

    mutating func take() -> MediaTime? {
      guard !frames.isEmpty else { return nil }
      defer { count() }
      return frames.removeFirst().time
    }

    mutating func takeRoom() -> Bool {
      guard let byteCount = refused, hasRoom(byteCount) else { return false }
      refused = nil
      return true
    }
  }

  @Test("Any sequence of calls does what the plain model does", arguments: 0..<24)
  func model(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    let ring = Bench(
      frameCapacity: Int.random(in: 1...6, using: &random),
      byteCapacity: Int.random(in: 1...(3 * maker.largeByteCount), using: &random), maker: maker)
    var model = Model(statistics: ring.statistics)
    for step in 0..<3000 {
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<45:
        let isLarge = Bool.random(using: &random)
        let expected = model.offer(time(step), isLarge ? maker.largeByteCount : maker.smallByteCount)
        #expect(ring.offer(step, isLarge: isLarge) == expected)
      case 45..<80:
        let expected = model.take()
        #expect(ring.take() == expected)
      case 80..<95:
        #expect(ring.head == model.head)
      case 95..<97:
        ring.ring.finish()
        model.isFinished = true
      case 97:
        ring.ring.resume()
        model.isFinished = false
      default:
        ring.ring.flush()
        ring.free()
        model.frames = []
        model.isFinished = false
        model.count()
      }
      let expected = model.takeRoom()
      #expect(ring.takeRoom() == expected)
      try #require(ring.statistics == model.statistics, "after step \(step)")
    }
  }
}
