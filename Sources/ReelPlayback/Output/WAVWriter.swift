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
  /// The position on the timeline before `frameCount` samples.
  private var reference = MediaTime.zero
  private var frameCount: Int64 = 0

  /// Gaps up to this length are rounding errors of timestamps.
  private static let tolerance = MediaTime(value: 20, timescale: 1000)
  /// Gaps of at least this length are seeks.
  private static let seekDistance = MediaTime(value: 10, timescale: 1)

  init(file: OutputFile, sampleFormat: WAVOutput.SampleFormat) {
    self.file = file
    self.sampleFormat = sampleFormat
  }

  /// Throws `ReelError.cannotWriteOutput`, and `unsupported` for samples that can't be converted.
  mutating func write(_ buffer: PCMBuffer, at time: MediaTime) throws(ReelError) {
    guard buffer.frameCount > 0 else { return }
    guard buffer.sampleRate > 0 else { throw ReelError(.unsupported, "the audio has no sample rate") }
    let target = try begin(buffer.format, at: time)
    if let converter, !Self.hasSameSamples(converter.source, buffer.format) { try endConversion() }
    try align(to: time)
    if Self.hasSameSamples(buffer.format, target) {
      try append(buffer)
      return
    }
    if converter == nil { converter = try PCMConverter(from: buffer.format, to: target) }
    if let converter { try append(converter.convert(buffer)) }
  }

  /// Completes the file. Nothing may be written after it.
  mutating func finish() throws(ReelError) {
    _ = try begin(PCMFormat(sampleRate: 48000, channelCount: 2), at: .zero)
    try endConversion()
    if let header { try file.commit(first: header.bytes(dataByteCount: dataByteCount)) }
  }

  // MARK: - Private

  private var sampleRate: Int32 { Int32(clamping: header?.format.sampleRate ?? 48000) }

  /// Writes the header before the first samples, which set the format of the file.
  private mutating func begin(_ format: PCMFormat, at time: MediaTime) throws(ReelError) -> PCMFormat {
    if let header { return header.format }
    let header = WAVHeader(format: format, sampleFormat: sampleFormat)
    try file.write(header.bytes(dataByteCount: nil))
    self.header = header
    reference = time
    return format
  }

  /// Fills the gap between the last samples and `time`, or continues at `time` without one.
  private mutating func align(to time: MediaTime) throws(ReelError) {
    let held = Int64(converter?.delayFrameCount ?? 0)
    let gap = time - (reference + MediaTime(value: frameCount + held, timescale: sampleRate))
    if gap > Self.tolerance, gap < Self.seekDistance {
      try endConversion()
      let rest = time - (reference + MediaTime(value: frameCount, timescale: sampleRate))
      try appendSilence(rest.ticks(timescale: sampleRate))
    } else if gap >= Self.seekDistance || gap < MediaTime.zero - Self.tolerance {
      reference = time
      frameCount = -held
    }
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
