internal import ReelCore
internal import ReelFFmpeg

/// Writes buffers of audio at their positions in a WAVE file. `WAVOutput` adds the lock.
struct WAVWriter {
  private let file: OutputFile
  private let sampleFormat: WAVOutput.SampleFormat
  /// Nil before the first samples.
  private var header: WAVHeader?
  private var converter: PCMConverter?
  private var dataByteCount: Int64 = 0
  private var frameCount: Int64 = 0
  /// The mean distance of buffers from where they were written, in samples.
  private var drift = 0.0

  /// A buffer that is this far from its place is put there. Timestamps are often rounded to milliseconds.
  private static let tolerance = 0.010
  /// The same for the mean distance of several buffers.
  private static let driftTolerance = 0.003
  /// The mean is over about this many buffers.
  private static let driftLength = 16.0

  init(file: OutputFile, sampleFormat: WAVOutput.SampleFormat) {
    self.file = file
    self.sampleFormat = sampleFormat
  }

  /// - Parameter time: The place of the first sample, from the beginning of the file. Samples before the beginning, and those
  ///   whose places are taken, are left out.
  ///
  /// Throws `ReelError.cannotWriteOutput`, and `unsupported` for samples that can't be converted.
  mutating func write(_ buffer: PCMBuffer, at time: MediaTime) throws(ReelError) {
    guard buffer.frameCount > 0 else { return }
    guard buffer.sampleRate > 0 else { throw ReelError(.unsupported, "the audio has no sample rate") }
    let target = try begin(buffer.format)
    if let converter, !Self.hasSameSamples(converter.source, buffer.format) { try endConversion() }
    let surplus = try align(to: time, in: buffer.sampleRate)
    let buffer = surplus > 0 ? buffer.dropping(surplus) : buffer
    guard buffer.frameCount > 0 else { return }
    if Self.hasSameSamples(buffer.format, target) {
      try append(buffer)
      return
    }
    if converter == nil { converter = try PCMConverter(from: buffer.format, to: target) }
    if let converter { try append(converter.convert(buffer)) }
  }

  /// Completes the file. Nothing may be written after it.
  ///
  /// - Parameter end: The end of the file, if its samples end earlier. Nil for the end of its samples.
  mutating func finish(at end: MediaTime?) throws(ReelError) {
    try endConversion()
    if header != nil, let end { try appendSilence(sample(at: end) - frameCount) }
    _ = try begin(PCMFormat(sampleRate: 48000, channelCount: 2))
    if let header { try file.commit(first: header.bytes(dataByteCount: dataByteCount)) }
  }

  // MARK: - Private

  private var sampleRate: Int32 { Int32(clamping: header?.format.sampleRate ?? 48000) }

  /// The number of samples until `time`, rounded to the nearest.
  private func sample(at time: MediaTime) -> Int64 { time.nearestFrame(at: Rational(sampleRate, 1)) }

  /// Writes the header before the first samples, which set the format of the file.
  private mutating func begin(_ format: PCMFormat) throws(ReelError) -> PCMFormat {
    if let header { return header.format }
    let header = WAVHeader(format: format, sampleFormat: sampleFormat)
    try file.write(header.bytes(dataByteCount: nil))
    self.header = header
    return format
  }

  /// Fills the gap between the last samples and `time`. Returns the number of samples at `rate` to leave out, because
  /// others are at their places.
  private mutating func align(to time: MediaTime, in rate: Int) throws(ReelError) -> Int {
    let held = Int64(converter?.delayFrameCount ?? 0)
    let gap = sample(at: time) - (frameCount + held)
    drift += (Double(gap) - drift) / Self.driftLength
    let second = Double(sampleRate)
    guard
      frameCount == 0 || abs(Double(gap)) > Self.tolerance * second
        || abs(drift) > Self.driftTolerance * second
    else { return 0 }
    drift = 0
    guard gap > 0 else {
      return Int(
        clamping: MediaTime(value: -gap, timescale: sampleRate).ticks(timescale: Int32(clamping: rate)))
    }
    try endConversion()
    try appendSilence(sample(at: time) - frameCount)
    return 0
  }

  /// Writes the samples that the converter holds back. Later samples get a new converter.
  private mutating func endConversion() throws(ReelError) {
    guard let converter else { return }
    self.converter = nil
    try append(converter.drain())
  }

  private mutating func append(_ buffer: PCMBuffer) throws(ReelError) {
    guard let header else { return }
    switch sampleFormat {
    case .int16: try write(buffer.int16Samples.map(\.littleEndian))
    case .float32: try write(buffer.samples.map(\.bitPattern.littleEndian))
    }
    frameCount += Int64(buffer.frameCount)
    dataByteCount += Int64(buffer.frameCount * header.blockByteCount)
  }

  private mutating func appendSilence(_ count: Int64) throws(ReelError) {
    guard let header, count > 0 else { return }
    let second = [UInt8](repeating: 0, count: header.format.sampleRate * header.blockByteCount)
    var rest = Int(count) * header.blockByteCount
    while rest > 0 {
      let piece = min(rest, second.count)
      try file.write(piece == second.count ? second : Array(second[..<piece]))
      rest -= piece
    }
    frameCount += count
    dataByteCount += count * Int64(header.blockByteCount)
  }

  private func write<Element: BitwiseCopyable>(_ elements: [Element]) throws(ReelError) {
    let result = elements.withUnsafeBytes { bytes in
      Result { () throws(ReelError) in try file.write(bytes) }
    }
    try result.get()
  }

  private static func hasSameSamples(_ left: PCMFormat, _ right: PCMFormat) -> Bool {
    left.sampleRate == right.sampleRate && left.channelCount == right.channelCount
  }
}
