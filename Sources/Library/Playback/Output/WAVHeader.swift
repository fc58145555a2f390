internal import ReelFFmpeg

/// The header of a WAVE file: RIFF (Multimedia Programming Interface 1.0), with a `fmt ` chunk that is
/// `WAVEFORMATEXTENSIBLE` for more than two channels, or RF64 (EBU Tech 3306) if sizes do not fit 32 bits.
///
/// A header has the same length for any size of the data, so that it can be rewritten when the size is known.
struct WAVHeader {
  let format: PCMFormat
  let sampleFormat: WAVOutput.SampleFormat

  /// The size of one sample of every channel.
  var blockByteCount: Int { format.channelCount * sampleFormat.byteCount }

  /// The header's bytes. If `dataByteCount` is nil, because the header can't be rewritten, the sizes are the
  /// largest possible; readers then read to the end.
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
