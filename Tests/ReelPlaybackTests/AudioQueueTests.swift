import ReelCore
import ReelFFmpeg
import Testing

@testable import ReelPlayback

@Suite("Sound that waits to be heard")
struct AudioQueueTests {
  private func time(_ hundredths: Int) -> MediaTime { MediaTime(value: Int64(hundredths), timescale: 100) }

  /// At 1000 samples a second, which count up from `start` on in milliseconds.
  private func chunk(_ start: Int, _ length: Int = 10, shift: MediaTime = .zero) -> AudioQueue.Chunk {
    let samples = (0..<(length * 10)).map { Float(start * 10 + $0) }
    return AudioQueue.Chunk(
      buffer: PCMBuffer(format: PCMFormat(sampleRate: 1000, channelCount: 1), samples: samples),
      shift: shift, mediaTime: time(start), offset: TimestampOffset(offset: .zero))
  }

  @Test("Sound is taken in order, as far as it has begun")
  func order() {
    let queue = AudioQueue()
    #expect(queue.isEmpty && queue.nextTime == nil)
    for start in [0, 10, 20] { queue.append(chunk(start), generation: 0) }
    #expect(queue.nextTime == .zero)
    #expect(queue.take(until: time(-1)).isEmpty)
    #expect(queue.take(until: time(10)).map(\.time) == [time(0), time(10)])
    #expect(queue.nextTime == time(20))
    queue.finish(generation: 0)
    #expect(!queue.isDrained)
    #expect(queue.take(until: nil).map(\.end) == [time(30)])
    #expect(queue.isDrained)
  }

  @Test("It is full at half a second, and tells once when there is room again")
  func room() {
    let queue = AudioQueue()
    let told = Locked(0)
    queue.setOnRoom { told.withLock { $0 += 1 } }
    for start in [0, 10, 20, 30] {
      queue.append(chunk(start), generation: 0)
      #expect(queue.hasRoom(generation: 0))
    }
    queue.append(chunk(40), generation: 0)
    // Nobody was refused so far.
    #expect(queue.take(until: .zero).count == 1)
    #expect(told.withLock { $0 } == 0)
    queue.append(chunk(50), generation: 0)
    #expect(!queue.hasRoom(generation: 0))
    #expect(queue.take(until: .zero).isEmpty)
    #expect(told.withLock { $0 } == 0)
    _ = queue.take(until: time(10))
    _ = queue.take(until: time(20))
    #expect(told.withLock { $0 } == 1)
    #expect(queue.hasRoom(generation: 0))
  }

  @Test("Sound before the place that was sought is let go, and the first of it cut there")
  func start() throws {
    let queue = AudioQueue()
    queue.flush(generation: 3, start: time(25))
    queue.append(chunk(0), generation: 3)
    queue.append(chunk(15), generation: 3)
    #expect(queue.isEmpty)
    queue.append(chunk(20), generation: 3)
    queue.append(chunk(30), generation: 3)
    let taken = queue.take(until: nil)
    try #require(taken.map(\.time) == [time(25), time(30)])
    #expect(taken[0].buffer.samples == (250..<300).map(Float.init))
    #expect(taken[1].buffer.samples.count == 100)
  }

  @Test("A place between two samples cuts no sample that is heard there")
  func startBetweenSamples() {
    let queue = AudioQueue()
    let place = MediaTime(value: 1005, timescale: 10_000)
    queue.flush(generation: 1, start: place)
    queue.append(chunk(10), generation: 1)
    let taken = queue.take(until: nil)
    #expect(taken.first?.buffer.samples.first == 100)
    #expect(taken.first?.time == place)
  }

  @Test("What comes later than the place that was sought is whole")
  func lateStart() {
    let queue = AudioQueue()
    queue.flush(generation: 1, start: time(5))
    queue.append(chunk(40), generation: 1)
    queue.append(chunk(0), generation: 1)
    #expect(queue.take(until: nil).map(\.time) == [time(40), time(0)])
  }

  @Test("What is of an earlier generation does nothing")
  func generations() {
    let queue = AudioQueue()
    for start in stride(from: 0, to: 60, by: 10) { queue.append(chunk(start), generation: 0) }
    #expect(!queue.hasRoom(generation: 0))
    queue.flush(generation: 1, start: nil)
    #expect(queue.isEmpty)
    queue.append(chunk(0), generation: 0)
    queue.finish(generation: 0)
    #expect(queue.isEmpty && !queue.isDrained)
    queue.finish(generation: 1)
    #expect(queue.isDrained)
    queue.flush(generation: 2, start: nil)
    #expect(!queue.isDrained)
  }

  @Test("Sound of later times through the item is dropped from the end")
  func iterations() {
    let queue = AudioQueue()
    for start in [0, 10] { queue.append(chunk(start), generation: 0) }
    for start in [20, 30] { queue.append(chunk(start, shift: time(20)), generation: 0) }
    queue.drop(after: time(20))
    #expect(queue.take(until: time(0)).count == 1)
    queue.drop(after: .zero)
    #expect(queue.take(until: nil).map(\.time) == [time(10)])
  }
}
