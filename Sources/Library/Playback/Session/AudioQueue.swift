internal import DequeModule
internal import ReelCore
internal import ReelFFmpeg

/// The decoded audio of one player, in order. It has one producer and one consumer; neither waits.
final class AudioQueue: Sendable {
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

  private struct State {
    var chunks: Deque<Chunk> = []
    var generation = 0
    var isFinished = false
    /// The end of the audio taken last.
    var takenEnd: MediaTime?
    /// Audio before this time is dropped; a chunk that contains it is cut.
    var start: MediaTime?
    var wasFull = false
    var onRoom: (@Sendable () -> Void)?
  }

  private let state = Locked(State(), rank: .media)
  /// The duration of audio to decode ahead.
  private static let capacity = MediaTime(value: 1, timescale: 2)

  func setOnRoom(_ onRoom: @escaping @Sendable () -> Void) { state.withLock { $0.onRoom = onRoom } }

  /// Returns false if enough is decoded; `onRoom` is called when there is room.
  func hasRoom(generation: Int) -> Bool {
    state.withLock { state in
      guard generation == state.generation else { return true }
      let isFull =
        if let first = state.chunks.first, let last = state.chunks.last {
          last.end - first.time >= Self.capacity
        } else {
          false
        }
      state.wasFull = isFull
      return !isFull
    }
  }

  func append(_ chunk: Chunk, generation: Int) {
    state.withLock { state in
      guard generation == state.generation else { return }
      var chunk = chunk
      if let start = state.start {
        guard chunk.end > start else { return }
        let missing = start - chunk.time
        if missing > .zero {
          let cut = missing.ticks(timescale: Int32(clamping: chunk.buffer.sampleRate))
          chunk.buffer = chunk.buffer.dropping(Int(cut))
          chunk.mediaTime = chunk.mediaTime + missing
        }
        state.start = nil
      }
      state.chunks.append(chunk)
    }
  }

  func finish(generation: Int) {
    state.withLock { state in
      if generation == state.generation { state.isFinished = true }
    }
  }

  /// Cancels the end: more audio follows.
  func resume(generation: Int) {
    state.withLock { state in
      if generation == state.generation { state.isFinished = false }
    }
  }

  /// Takes the audio due by `time`; nil for all of it. Returns nothing if `generation` is another one; nil
  /// accepts any.
  func take(until time: MediaTime?, generation: Int? = nil) -> [Chunk] {
    let (taken, onRoom) = state.withLock { state -> ([Chunk], (@Sendable () -> Void)?) in
      guard generation.map({ $0 == state.generation }) ?? true else { return ([], nil) }
      var taken: [Chunk] = []
      while let first = state.chunks.first, time.map({ first.time <= $0 }) ?? true {
        taken.append(first)
        state.takenEnd = first.end
        state.chunks.removeFirst()
      }
      guard state.wasFull, !taken.isEmpty else { return (taken, nil) }
      state.wasFull = false
      return (taken, state.onRoom)
    }
    onRoom?()
    return taken
  }

  /// The time at which the next audio is due; nil if there is none.
  var nextTime: MediaTime? { state.withLock { $0.chunks.first?.time } }

  /// The end of the audio so far; nil before there is any.
  var end: MediaTime? { state.withLock { $0.chunks.last?.end ?? $0.takenEnd } }

  var isEmpty: Bool { state.withLock { $0.chunks.isEmpty } }
  /// True if the last audio has been taken.
  var isDrained: Bool { state.withLock { $0.isFinished && $0.chunks.isEmpty } }

  /// Drops the audio of iterations after the one that begins at `shift`.
  func drop(after shift: MediaTime) {
    state.withLock { state in
      while let last = state.chunks.last, last.shift > shift { state.chunks.removeLast() }
    }
  }

  /// Drops all audio and begins `generation`, whose audio is played from `start` on.
  func flush(generation: Int, start: MediaTime?) {
    state.withLock { state in
      state.chunks = []
      state.generation = generation
      state.isFinished = false
      state.takenEnd = nil
      state.start = start
      state.wasFull = false
    }
  }
}
