public import ReelCore
public import ReelPlayback
internal import ReelFFmpeg

/// An output that writes audio as a WAVE file: little-endian linear PCM with the sample rate and channels of the first
/// buffer.
///
/// The file has a temporary name until ``finish()``, and is removed if writing fails. Beyond 4 GiB it becomes RF64.
///
/// Audio is written at its `TimedAudio.outputTime`. Therefore, the file begins with the first frame, and is
/// synchronous with that of a ``Y4MOutput`` of the same player: missing or muted audio becomes silence, and
/// audio before the first frame is left out. If audio ends before the video, silence follows. Distances of up
/// to 10 ms, and 3 ms on average, are treated as rounding of timestamps and ignored. Buffers with another
/// sample rate or other channels are converted to those of the first.
public final class WAVOutput: AudioOutput {
  /// The format of the samples.
  public enum SampleFormat: String, Sendable, Hashable, CaseIterable {
    /// 16-bit integers, converted as by `PCMBuffer.int16Samples`.
    case int16
    /// 32-bit floating point, as decoded.
    case float32

    var byteCount: Int {
      switch self {
      case .int16: 2
      case .float32: 4
      }
    }
  }

  private struct State {
    /// Nil once the output was finished or has failed.
    var writer: WAVWriter?
    var failure: ReelError?
    /// The end of playback, in output time.
    var end: MediaTime?
  }

  private let state: Locked<State>

  /// Creates the file, under a temporary name.
  ///
  /// An existing named pipe or device at `path` is written to directly, with no sizes in the header. Opening a named
  /// pipe waits for its reader.
  ///
  /// Throws `ReelError.cannotCreateOutput`.
  public init(path: String, sampleFormat: SampleFormat = .int16) throws(ReelError) {
    state = Locked(
      State(writer: WAVWriter(file: try OutputFile(path: path), sampleFormat: sampleFormat)), rank: .transfer)
  }

  /// Writes samples at their output time.
  ///
  /// Throws `ReelError`:
  /// - `cannotWriteOutput` if writing fails, or `unsupported` if the samples can't be converted. The file is removed,
  ///   and later calls throw the same error.
  /// - `usage` after ``finish()``.
  public func write(_ audio: TimedAudio) throws(ReelError) {
    try state.withLock { state throws(ReelError) in
      if let failure = state.failure { throw failure }
      guard state.writer != nil else { throw ReelError(.usage, "the output has been finished") }
      do throws(ReelError) {
        try state.writer?.write(audio.buffer, at: audio.outputTime)
      } catch {
        state = State(failure: error)
        throw error
      }
    }
  }

  /// Records the end, up to which ``finish()`` adds silence.
  public func ended(at outputTime: MediaTime) { state.withLock { $0.end = outputTime } }

  /// Writes the sizes into the header and gives the file its name. Without any samples the file is a valid, empty one.
  ///
  /// Throws `ReelError.cannotWriteOutput` or `cannotCreateOutput`, or the error of an earlier ``write(_:)``.
  public func finish() throws(ReelError) {
    try state.withLock { state throws(ReelError) in
      if let failure = state.failure { throw failure }
      do throws(ReelError) {
        try state.writer?.finish(at: state.end)
        state = State()
      } catch {
        state = State(failure: error)
        throw error
      }
    }
  }
}

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

  /// - Parameter time: The position of the first sample, from the beginning of the file. Samples before the
  ///   beginning, and samples at occupied positions, are left out.
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

  /// Appends the pieces. Gaps before and between them become silence.
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

/// The header of a WAVE file: RIFF (Multimedia Programming Interface 1.0), with a `fmt ` chunk that is
/// `WAVEFORMATEXTENSIBLE` for more than two channels, or RF64 (EBU Tech 3306) if sizes do not fit 32 bits.
///
/// A header has the same length for any size of the data, so that it can be rewritten when the size is known.
struct WAVHeader {
  let format: PCMFormat
  let sampleFormat: WAVOutput.SampleFormat

  /// The size of one sample of every channel.
  var blockByteCount: Int { format.channelCount * sampleFormat.byteCount }

  /// Returns the header's bytes. If `dataByteCount` is nil, because the header can't be rewritten, the sizes
  /// are the largest possible; readers then read to the end.
  func bytes(dataByteCount: Int64?) -> [UInt8] {
    var body: [UInt8] = []
    append(chunk("fmt ", formatChunk()), to: &body)
    if sampleFormat == .float32 {
      append(chunk("fact", little(UInt32(clamping: (dataByteCount ?? .max) / blockSize))), to: &body)
    }
    // "WAVE", the chunk in place of `ds64`, the chunks, the header of `data`, and the data.
    let riffByteCount = dataByteCount.map { 4 + 8 + Int64(Self.sizesByteCount) + Int64(body.count) + 8 + $0 }
    let isLarge = riffByteCount.map { $0 > Int64(UInt32.max) } ?? false
    var bytes = Array((isLarge ? "RF64" : "RIFF").utf8)
    append(little(isLarge ? .max : UInt32(clamping: riffByteCount ?? .max)), to: &bytes)
    append(Array("WAVE".utf8), to: &bytes)
    if isLarge, let riffByteCount, let dataByteCount {
      let sizes =
        little(UInt64(riffByteCount)) + little(UInt64(dataByteCount))
        + little(UInt64(dataByteCount / blockSize)) + little(UInt32(0))
      append(chunk("ds64", sizes), to: &bytes)
    } else {
      append(chunk("JUNK", [UInt8](repeating: 0, count: Self.sizesByteCount)), to: &bytes)
    }
    append(body, to: &bytes)
    append(Array("data".utf8), to: &bytes)
    append(little(isLarge ? .max : UInt32(clamping: dataByteCount ?? .max)), to: &bytes)
    return bytes
  }

  // MARK: - Private

  /// The content of `ds64`: three sizes and the length of an empty table.
  private static let sizesByteCount = 28

  private var blockSize: Int64 { Int64(max(1, blockByteCount)) }

  private func formatChunk() -> [UInt8] {
    let code: UInt16 = sampleFormat == .float32 ? 3 : 1
    let isExtensible = format.channelCount > 2
    let rate = UInt32(clamping: format.sampleRate)
    var bytes = little(isExtensible ? 0xfffe : code)
    append(little(UInt16(clamping: format.channelCount)), to: &bytes)
    append(little(rate), to: &bytes)
    append(little(UInt32(clamping: format.sampleRate * blockByteCount)), to: &bytes)
    append(little(UInt16(clamping: blockByteCount)), to: &bytes)
    append(little(UInt16(sampleFormat.byteCount * 8)), to: &bytes)
    if isExtensible {
      append(little(UInt16(22)), to: &bytes)
      append(little(UInt16(sampleFormat.byteCount * 8)), to: &bytes)
      append(little(UInt32(exactly: format.channelMask) ?? 0), to: &bytes)
      // KSDATAFORMAT_SUBTYPE_PCM, _IEEE_FLOAT.
      append(little(code), to: &bytes)
      append([0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71], to: &bytes)
    } else if code != 1 {
      append(little(UInt16(0)), to: &bytes)
    }
    return bytes
  }

  private func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
    Array(name.utf8) + little(UInt32(content.count)) + content
  }

  private func append(_ more: [UInt8], to bytes: inout [UInt8]) { bytes.append(contentsOf: more) }

  private func little(_ value: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: value.littleEndian) { Array($0) }
  }
}
