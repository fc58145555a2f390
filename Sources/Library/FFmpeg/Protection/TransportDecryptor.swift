internal import ReelCore

/// Decrypts the access units and audio frames of MPEG-TS with SAMPLE-AES ("MPEG-2 Stream Encryption Format for HTTP Live
/// Streaming").
struct TransportDecryptor {
  private static let blockByteCount = 16
  /// H.264: the clear bytes of a NAL unit before its first encrypted block, and the number of blocks of which one,
  /// the first, is encrypted.
  private static let unitLeader = 32
  private static let patternBlockCount = 10
  /// NAL units up to this size are in the clear.
  private static let clearUnitByteCount = 48
  /// Audio: the number of clear bytes after the header.
  private static let frameLeader = 16

  let cipher: SampleDecryptor
  let key: ContentKey
  let vector: [UInt8]

  /// Decrypts an H.264 access unit. The result has at most as many bytes: emulation prevention bytes that only the
  /// encryption made necessary are removed.
  func accessUnit(_ bytes: UnsafeRawBufferPointer) throws -> [UInt8] {
    var plain: [UInt8] = []
    plain.reserveCapacity(bytes.count)
    var copied = 0
    var start = bytes.firstStartCode(from: 0).map { $0 + 3 }
    while let begin = start {
      let next = bytes.firstStartCode(from: begin)
      var end = next ?? bytes.count
      // Zeros before a start code are not part of a unit.
      while end > begin, bytes[end - 1] == 0 { end -= 1 }
      let type = begin < end ? bytes[begin] & 0x1f : 0
      if type == 1 || type == 5, end - begin > Self.clearUnitByteCount {
        plain.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[copied..<begin]))
        plain += try unit(UnsafeRawBufferPointer(rebasing: bytes[begin..<end]))
        copied = end
      }
      start = next.map { $0 + 3 }
    }
    plain.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[copied...]))
    return plain
  }

  /// Decrypts audio frames in place: one frame, or with E-AC-3 also its dependent frames.
  func audioFrames(_ bytes: UnsafeMutableRawBufferPointer, codec: AudioCodec) throws(ReelError) {
    var start = 0
    while start + AudioFrameHeader.byteCount <= bytes.count,
      let header = AudioFrameHeader(
        codec: codec, bytes: UnsafeRawBufferPointer(rebasing: bytes[start...]))
    {
      let end = min(bytes.count, start + header.byteCount)
      // An ADTS header with a checksum has two more bytes.
      let headerByteCount = codec == .aac ? (bytes[start + 1] & 1 == 0 ? 9 : 7) : 0
      let first = start + headerByteCount + Self.frameLeader
      if first < end {
        let whole = (end - first) / Self.blockByteCount * Self.blockByteCount
        var vector = vector
        try cipher.decryptBlocks(
          UnsafeMutableRawBufferPointer(rebasing: bytes[first..<first + whole]), vector: &vector, key: key)
      }
      start = end
    }
  }

  // MARK: - Private

  private func unit(_ bytes: UnsafeRawBufferPointer) throws -> [UInt8] {
    var unit: [UInt8] = []
    unit.reserveCapacity(bytes.count)
    var zeros = 0
    for (index, byte) in bytes.enumerated() {
      // ISO/IEC 14496-10 §7.4.1
      if zeros >= 2, byte == 3, index + 1 < bytes.count {
        zeros = 0
        continue
      }
      zeros = byte == 0 ? zeros + 1 : 0
      unit.append(byte)
    }
    var vector = vector
    var offset = Self.unitLeader
    // The last block is in the clear, even if it is complete.
    while unit.count - offset > Self.blockByteCount {
      let block = offset..<offset + Self.blockByteCount
      try unit.withUnsafeMutableBytes { bytes in
        try cipher.decryptBlocks(
          UnsafeMutableRawBufferPointer(rebasing: bytes[block]), vector: &vector, key: key)
      }
      offset += Self.patternBlockCount * Self.blockByteCount
    }
    return unit
  }
}
