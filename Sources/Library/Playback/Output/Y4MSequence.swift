internal import ReelCore
internal import ReelFFmpeg

/// Writes frames by their output time in a YUV4MPEG2 file, which has a constant rate and no timestamps: each at the place
/// nearest to its time, and repeated up to the next one. `Y4MOutput` adds the lock.
struct Y4MSequence {
  /// The frames of the file. It has one.
  private struct Track {
    let rate: Rational
    /// The output time of the first frame.
    let start: MediaTime
    var count: Int64 = 1
    /// The last frame, which is repeated.
    var last: PlanarImage
    /// The end of the last frame.
    var end: MediaTime

    /// The number of frames before the one at `time`. Times are often rounded to milliseconds, so the next place is taken if
    /// it is the nearest but for that.
    func place(of time: MediaTime) -> Int64 {
      let (time, rounding) = (time - start, MediaTime(value: 1, timescale: 1000))
      let isNext =
        (time - rounding).nearestFrame(at: rate) <= count && (time + rounding).nearestFrame(at: rate) >= count
      return isNext ? count : time.nearestFrame(at: rate)
    }
  }

  private let writer: Y4MWriter
  private var track: Track?

  /// Audio that is longer than the frames by up to this much is padding of its encoder. Longer audio is heard beside the last
  /// frame.
  private static let paddingLimit = MediaTime(value: 1, timescale: 10)

  init(to file: OutputFile) { writer = Y4MWriter(to: file) }

  /// Writes a frame after the repetitions of the one before it. Leaves it out if its place is taken.
  ///
  /// Throws like `Y4MWriter.convert(_:rate:)` and `write(_:)`.
  mutating func write(_ frame: borrowing TimedFrame) throws(ReelError) {
    let time = frame.outputTime
    let end = time + min(frame.displayTime, OutputTimeline.longestHole)
    guard let track else {
      let rate = frame.constantRate
      let image = try writer.convert(frame, rate: rate)
      track = Track(rate: rate, start: time, last: image, end: end)
      return try writer.write(image)
    }
    let place = track.place(of: time)
    guard place >= track.count else { return }
    let image = try writer.convert(frame, rate: track.rate)
    try fill(to: place)
    try writer.write(image)
    self.track?.count += 1
    self.track?.last = image
    self.track?.end = end
  }

  /// Completes the file. Without a frame, there is none.
  ///
  /// - Parameter end: The end of playback in output time; nil for that of the last frame.
  mutating func finish(at end: MediaTime?) throws(ReelError) {
    guard let track else { return }
    let end = end ?? track.end
    try fill(to: track.place(of: end - track.end > Self.paddingLimit ? end : min(end, track.end)))
    try writer.finish()
  }

  // MARK: - Private

  /// Repeats the last frame until there are `count` frames.
  private mutating func fill(to count: Int64) throws(ReelError) {
    while let track, track.count < count {
      try writer.write(track.last)
      self.track?.count += 1
    }
  }
}
