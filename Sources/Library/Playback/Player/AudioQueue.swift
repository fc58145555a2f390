internal import DequeModule
internal import ReelCore
internal import ReelFFmpeg

/// The decoded audio of one player that is not heard yet, in order. A pure value.
struct AudioQueue: Sendable {
  struct Chunk: Sendable {
    var buffer: PCMBuffer
    /// The time to subtract from `time` for the item's own time.
    let shift: MediaTime
    /// `time` without `offset`.
    var mediaTime: MediaTime
    /// The offset of the timestamps. The first frame may correct it after the audio was decoded.
    let offset: TimestampOffset

    /// The time on the player's timeline.
    var time: MediaTime { mediaTime + offset.value }

    var end: MediaTime { time + buffer.duration }
  }

  private var chunks: Deque<Chunk> = []
  private var isFinished = false
  /// The end of the audio taken last.
  private var takenEnd: MediaTime?
  /// Audio before this time is dropped; a chunk that contains it is cut.
  private var start: MediaTime?
  /// True if the decoder waits for room.
  private var wasFull = false

  /// The duration of audio to decode ahead.
  private static let capacity = MediaTime(value: 1, timescale: 2)

  /// The time at which the next audio is due; nil if there is none.
  var nextTime: MediaTime? { chunks.first?.time }

  /// The end of the audio so far; nil before there is any.
  var end: MediaTime? { chunks.last?.end ?? takenEnd }

  var isEmpty: Bool { chunks.isEmpty }

  /// True if the last audio has been taken.
  var isDrained: Bool { isFinished && chunks.isEmpty }

  /// Returns false if enough is decoded; `takeRoom` then tells when there is room.
  mutating func hasRoom() -> Bool {
    wasFull = isFull
    return !wasFull
  }

  /// Returns true, once, if the decoder found no room and there is some.
  mutating func takeRoom() -> Bool {
    guard wasFull, !isFull else { return false }
    wasFull = false
    return true
  }

  mutating func append(_ chunk: Chunk) {
    var chunk = chunk
    if let start {
      guard chunk.end > start else { return }
      let missing = start - chunk.time
      if missing > .zero {
        let cut = missing.ticks(timescale: Int32(clamping: chunk.buffer.sampleRate))
        chunk.buffer = chunk.buffer.dropping(Int(cut))
        chunk.mediaTime = chunk.mediaTime + missing
      }
      self.start = nil
    }
    chunks.append(chunk)
  }

  mutating func finish() { isFinished = true }

  /// Cancels the end: more audio follows.
  mutating func resume() { isFinished = false }

  /// Takes the next chunk, if it is due by `time`; nil for any.
  mutating func take(until time: MediaTime?) -> Chunk? {
    guard let first = chunks.first, time.map({ first.time <= $0 }) ?? true else { return nil }
    takenEnd = first.end
    return chunks.removeFirst()
  }

  /// Drops the audio of iterations after the one that begins at `shift`.
  mutating func drop(after shift: MediaTime) {
    while let last = chunks.last, last.shift > shift { chunks.removeLast() }
  }

  /// Drops all audio; what follows is played from `start` on.
  mutating func flush(start: MediaTime?) {
    self = AudioQueue()
    self.start = start
  }

  // MARK: - Private

  private var isFull: Bool {
    guard let first = chunks.first, let last = chunks.last else { return false }
    return last.end - first.time >= Self.capacity
  }
}
