internal import ReelCore
internal import ReelFFmpeg
internal import ReelReading

/// Places consecutive buffers of audio by their output time, in the format of the first one.
struct AudioSequence {
  /// Samples, with the number of samples before them.
  struct Piece {
    let buffer: PCMBuffer
    let position: Int64
  }

  /// Nil before the first samples.
  private(set) var format: PCMFormat?
  /// The position after the last samples.
  private var end: Int64 = 0
  private var converter: PCMConverter?
  /// The mean distance of buffers from their positions, in samples.
  private var drift = 0.0

  /// The distance in seconds at which a buffer is moved to its position. Timestamps are often rounded to
  /// milliseconds.
  private static let tolerance = 0.010
  /// The same for the mean distance of several buffers.
  private static let driftTolerance = 0.003
  /// The approximate number of buffers in the mean.
  private static let driftLength = 16.0
  private static let usualFormat = PCMFormat(sampleRate: 48000, channelCount: 2)

  /// Returns the format, which is 48 kHz stereo if there are no samples yet.
  mutating func begin() -> PCMFormat { begin(Self.usualFormat) }

  /// Returns the number of samples until `time`, rounded to the nearest.
  func position(at time: MediaTime) -> Int64 { time.nearestFrame(at: Rational(sampleRate, 1)) }

  /// Returns samples to write, which continue earlier ones or leave a gap.
  ///
  /// - Parameter time: The position of the first sample. Samples before zero, and samples at occupied
  ///   positions, are left out.
  ///
  /// Throws `ReelError.unsupported` for samples that can't be converted.
  mutating func place(_ buffer: PCMBuffer, at time: MediaTime) throws(ReelError) -> [Piece] {
    guard buffer.frameCount > 0 else { return [] }
    guard buffer.sampleRate > 0 else { throw ReelError(.unsupported, "the audio has no sample rate") }
    let target = begin(buffer.format)
    var pieces: [Piece] = []
    if let converter, !Self.hasSameSamples(converter.source, buffer.format) { pieces += try endConversion() }
    let surplus = try align(to: time, in: buffer.sampleRate, &pieces)
    let buffer = surplus > 0 ? buffer.dropping(surplus) : buffer
    guard buffer.frameCount > 0 else { return pieces }
    if Self.hasSameSamples(buffer.format, target) { return pieces + append(buffer) }
    if converter == nil { converter = try PCMConverter(from: buffer.format, to: target) }
    if let converter { pieces += append(try converter.convert(buffer)) }
    return pieces
  }

  /// Returns the samples that the converter holds back. Later samples use a new converter.
  mutating func endConversion() throws(ReelError) -> [Piece] {
    guard let converter else { return [] }
    self.converter = nil
    return append(try converter.drain())
  }

  // MARK: - Private

  private var sampleRate: Int32 { Int32(clamping: (format ?? Self.usualFormat).sampleRate) }

  private mutating func begin(_ format: PCMFormat) -> PCMFormat {
    let known = self.format ?? format
    self.format = known
    return known
  }

  /// Leaves a gap between the last samples and `time`. Returns the number of samples at `rate` to leave out,
  /// because their positions are occupied.
  private mutating func align(
    to time: MediaTime, in rate: Int, _ pieces: inout [Piece]
  ) throws(ReelError) -> Int {
    let held = Int64(converter?.delayFrameCount ?? 0)
    let gap = position(at: time) - (end + held)
    drift += (Double(gap) - drift) / Self.driftLength
    let second = Double(sampleRate)
    guard
      end == 0 || abs(Double(gap)) > Self.tolerance * second || abs(drift) > Self.driftTolerance * second
    else { return 0 }
    drift = 0
    guard gap > 0 else {
      return Int(
        clamping: MediaTime(value: -gap, timescale: sampleRate).ticks(timescale: Int32(clamping: rate)))
    }
    pieces += try endConversion()
    end = max(end, position(at: time))
    return 0
  }

  private mutating func append(_ buffer: PCMBuffer) -> [Piece] {
    guard buffer.frameCount > 0 else { return [] }
    defer { end += Int64(buffer.frameCount) }
    return [Piece(buffer: buffer, position: end)]
  }

  private static func hasSameSamples(_ left: PCMFormat, _ right: PCMFormat) -> Bool {
    left.sampleRate == right.sampleRate && left.channelCount == right.channelCount
  }
}
