package import ReelCore
internal import ReelFFmpeg
package import ReelReading

/// Maps the times of frames and audio to output time: the running time of outputs, which begins at 0 with the
/// first frame and continues over loops, seeks, jumps and items. A pure value.
///
/// A hole in the media is a hole in output time, for frames and audio alike. A seek or a jump leaves none:
/// the first frame or audio after it follows the previous one. There, and where a loop begins again, output
/// time continues at a whole number of frames, so that the frames of a file with a constant rate keep their
/// positions.
package struct OutputTimeline: Sendable {
  /// The longest hole. The rest of a longer one is left out.
  package static let longestHole = MediaTime(value: 60, timescale: 1)
  /// The time by which rounded timestamps may make an iteration longer than its frames.
  private static let roundingError = MediaTime(value: 2, timescale: 1000)

  /// One pass through the item: the start of its times, and the offset added to them.
  private struct Iteration {
    var shift: MediaTime
    var offset: MediaTime

    func earlier(by length: MediaTime) -> Iteration { Iteration(shift: shift, offset: offset - length) }
  }

  /// True once the time of the first frame is known.
  package private(set) var hasBegun = false
  /// The end of the frames and the audio so far.
  package private(set) var end = MediaTime.zero
  /// Nil after a seek or a jump.
  private var current: Iteration?
  /// The previous iteration, whose last frame may be shown after the audio of the current one has begun.
  private var previous: Iteration?
  /// The rate of the first frame.
  private var rate: Rational?

  package init() {}

  /// Records a seek, a jump or another item: the next time continues where the last one ended.
  package mutating func breakOff() {
    current = nil
    previous = nil
  }

  /// Begins with a frame at `time` that is shown later, after audio.
  mutating func begin(firstFrame time: MediaTime, shift: MediaTime) {
    guard !hasBegun else { return }
    hasBegun = true
    current = Iteration(shift: shift, offset: .zero - time)
  }

  /// Returns the output time of a frame.
  ///
  /// - Parameters:
  ///   - time: The time on the player's timeline.
  ///   - shift: The start of the frame's iteration on that timeline.
  package mutating func place(_ frame: VideoFrame, at time: MediaTime, shift: MediaTime) -> MediaTime {
    hasBegun = true
    if rate == nil { rate = frame.constantRate }
    return place(time, length: frame.displayTime, shift: shift)
  }

  /// Returns the output time of audio. Before the time of the first frame is known, all audio is before it.
  mutating func place(_ audio: AudioQueue.Chunk) -> MediaTime {
    guard hasBegun else { return .zero - audio.buffer.duration }
    return place(audio.time, length: audio.buffer.duration, shift: audio.shift)
  }

  // MARK: - Private

  private mutating func place(_ time: MediaTime, length: MediaTime, shift: MediaTime) -> MediaTime {
    let hole = time + offset(of: time, shift: shift) - end
    if hole > Self.longestHole {
      current = current?.earlier(by: hole - Self.longestHole)
      previous = previous?.earlier(by: hole - Self.longestHole)
    }
    let placed = time + offset(of: time, shift: shift)
    end = max(end, placed + min(length, Self.longestHole))
    return placed
  }

  private mutating func offset(of time: MediaTime, shift: MediaTime) -> MediaTime {
    guard let current else {
      let begun = Iteration(shift: shift, offset: wholeFrames(end) - time)
      self.current = begun
      return begun.offset
    }
    guard shift != current.shift else { return current.offset }
    guard shift > current.shift else { return previous?.offset ?? current.offset }
    let length = shift - current.shift
    let begun = Iteration(shift: shift, offset: current.offset + (wholeFrames(length) - length))
    previous = current
    self.current = begun
    return begun.offset
  }

  /// Returns the time rounded up to a whole number of frames.
  private func wholeFrames(_ time: MediaTime) -> MediaTime {
    guard let rate else { return time }
    let count = (time - Self.roundingError).frameCount(at: rate) + 1
    return MediaTime(frameCount: max(0, count), at: rate)
  }
}
