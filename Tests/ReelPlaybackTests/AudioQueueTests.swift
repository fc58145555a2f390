import ReelCore
import ReelFFmpeg
import Testing

@testable import ReelPlayback
@testable import ReelReading

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
    var queue = AudioQueue()
    #expect(queue.isEmpty && queue.nextTime == nil)
    for start in [0, 10, 20] { queue.append(chunk(start)) }
    #expect(queue.nextTime == .zero)
    #expect(queue.takeAll(until: time(-1)).isEmpty)
    #expect(queue.takeAll(until: time(10)).map(\.time) == [time(0), time(10)])
    #expect(queue.nextTime == time(20))
    queue.finish()
    #expect(!queue.isDrained)
    #expect(queue.takeAll().map(\.end) == [time(30)])
    #expect(queue.isDrained)
  }

  @Test("It is full at half a second, and low below half of that")
  func room() {
    var queue = AudioQueue()
    for start in [0, 10, 20, 30, 40] {
      #expect(!queue.isFull)
      #expect(queue.isLow == (start < 30))
      queue.append(chunk(start))
    }
    #expect(queue.isFull && !queue.isLow)
    _ = queue.takeAll(until: time(10))
    #expect(!queue.isFull && !queue.isLow)
    _ = queue.takeAll(until: time(20))
    #expect(queue.isLow)
  }

  @Test("Sound before the place that was sought is let go, and the first of it cut there")
  func start() throws {
    var queue = AudioQueue()
    queue.flush(start: time(25))
    queue.append(chunk(0))
    queue.append(chunk(15))
    #expect(queue.isEmpty)
    queue.append(chunk(20))
    queue.append(chunk(30))
    let taken = queue.takeAll()
    try #require(taken.map(\.time) == [time(25), time(30)])
    #expect(taken[0].buffer.samples == (250..<300).map(Float.init))
    #expect(taken[1].buffer.samples.count == 100)
  }

  @Test("A place between two samples cuts no sample that is heard there")
  func startBetweenSamples() {
    var queue = AudioQueue()
    let place = MediaTime(value: 1005, timescale: 10_000)
    queue.flush(start: place)
    queue.append(chunk(10))
    let taken = queue.takeAll()
    #expect(taken.first?.buffer.samples.first == 100)
    #expect(taken.first?.time == place)
  }

  @Test("What comes later than the place that was sought is whole")
  func lateStart() {
    var queue = AudioQueue()
    queue.flush(start: time(5))
    queue.append(chunk(40))
    queue.append(chunk(0))
    #expect(queue.takeAll().map(\.time) == [time(40), time(0)])
  }

  @Test("Audio after the end takes the end back: only a damaged part was left out")
  func endTakenBack() {
    var queue = AudioQueue()
    queue.finish()
    #expect(queue.isDrained)
    queue.append(chunk(0))
    _ = queue.takeAll()
    #expect(!queue.isDrained)
  }

  @Test("A flush drops everything, and the end")
  func flush() {
    var queue = AudioQueue()
    for start in stride(from: 0, to: 60, by: 10) { queue.append(chunk(start)) }
    queue.finish()
    queue.flush(start: nil)
    #expect(queue.isEmpty && !queue.isDrained && queue.end == nil && queue.isLow)
    queue.finish()
    #expect(queue.isDrained)
    queue.resume()
    #expect(!queue.isDrained)
  }

  @Test("Sound of later times through the item is dropped from the end")
  func iterations() {
    var queue = AudioQueue()
    for start in [0, 10] { queue.append(chunk(start)) }
    for start in [20, 30] { queue.append(chunk(start, shift: time(20))) }
    queue.drop(after: time(20))
    #expect(queue.takeAll(until: time(0)).count == 1)
    queue.drop(after: .zero)
    #expect(queue.takeAll().map(\.time) == [time(10)])
  }
}
