internal import ReelCore
internal import ReelFFmpeg

/// Writes buffers of audio at their positions in a WAVE file. `WAVOutput` adds the lock.
struct WAVWriter {
  private let file: OutputFile
  private let sampleFormat: WAVOutput.SampleFormat
  private var sequence = AudioSequence()
  /// Nil before the first samples.
  private var header: WAVHeader?
  private var frameCount: Int64 = 0

  init(file: OutputFile, sampleFormat: WAVOutput.SampleFormat) {
    self.file = file
    self.sampleFormat = sampleFormat
  }

  /// - Parameter time: The place of the first sample, from the beginning of the file. Samples before the beginning, and those
  ///   whose places are taken, are left out.
  ///
  /// Throws `ReelError.cannotWriteOutput`, and `unsupported` for samples that can't be converted.
  mutating func write(_ buffer: PCMBuffer, at time: MediaTime) throws(ReelError) {
    let pieces = try sequence.place(buffer, at: time)
    if let format = sequence.format { try begin(format) }
    try append(pieces)
  }

  /// Completes the file. Nothing may be written after it.
  ///
  /// - Parameter end: The end of the file, if its samples end earlier. Nil for the end of its samples.
  mutating func finish(at end: MediaTime?) throws(ReelError) {
    try append(sequence.endConversion())
    if header != nil, let end { try appendSilence(sequence.position(at: end) - frameCount) }
    try begin(sequence.begin())
    guard let header else { return }
    try file.commit(first: header.bytes(dataByteCount: frameCount * Int64(header.blockByteCount)))
  }

  // MARK: - Private

  /// Writes the header before the first samples.
  private mutating func begin(_ format: PCMFormat) throws(ReelError) {
    guard header == nil else { return }
    let header = WAVHeader(format: format, sampleFormat: sampleFormat)
    try file.write(header.bytes(dataByteCount: nil))
    self.header = header
  }

  /// Gaps before and between the pieces become silence.
  private mutating func append(_ pieces: [AudioSequence.Piece]) throws(ReelError) {
    for piece in pieces {
      try appendSilence(piece.position - frameCount)
      switch sampleFormat {
      case .int16: try write(piece.buffer.int16Samples.map(\.littleEndian))
      case .float32: try write(piece.buffer.samples.map(\.bitPattern.littleEndian))
      }
      frameCount += Int64(piece.buffer.frameCount)
    }
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
  }

  private func write<Element: BitwiseCopyable>(_ elements: [Element]) throws(ReelError) {
    let result = elements.withUnsafeBytes { bytes in
      Result { () throws(ReelError) in try file.write(bytes) }
    }
    try result.get()
  }
}
