package import ReelCore

/// Decrypts the access units and audio frames of MPEG-TS with SAMPLE-AES ("MPEG-2 Stream Encryption Format
/// for HTTP Live Streaming").
struct TransportDecryptor {
  private static let blockByteCount = BlockCipher.blockByteCount
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

/// Decrypts AES-128 in CBC mode with PKCS #7 padding, piece by piece, as used for whole HLS segments (RFC
/// 8216 §4.3.2.4).
///
/// Confined to one task or thread at a time.
package struct AES128Decryptor: ~Copyable {
  /// The size of a key, of an initialization vector, and of a block, in bytes.
  package static let blockByteCount = BlockCipher.blockByteCount

  private let cipher: BlockCipher
  private var vector: [UInt8]
  /// Bytes that are not a complete block yet, or may be the last block, with padding to remove.
  private var held: [UInt8] = []

  /// Throws `badMedia` for a key or a vector that does not have 16 bytes.
  package init(key: [UInt8], initializationVector: [UInt8]) throws(ReelError) {
    guard let content = ContentKey(bytes: key) else {
      throw ReelError(.badMedia, "the key has \(key.count) bytes, not \(Self.blockByteCount)")
    }
    guard initializationVector.count == Self.blockByteCount else {
      throw ReelError(.badMedia, "the IV has \(initializationVector.count) bytes, not \(Self.blockByteCount)")
    }
    cipher = try BlockCipher(content)
    vector = initializationVector
  }

  /// Returns the plain bytes that follow from `chunk`, which may have any length; empty if more are needed.
  package mutating func update(_ chunk: [UInt8]) -> [UInt8] {
    held.append(contentsOf: chunk)
    let blockCount = (held.count - 1) / Self.blockByteCount
    guard blockCount > 0 else { return [] }
    let plain = decrypt(held, blockCount: blockCount)
    held.removeFirst(plain.count)
    return plain
  }

  /// Returns the last plain bytes, without the padding. Throws `badMedia` if the length or the padding is
  /// wrong, as after a wrong key.
  package mutating func finish() throws(ReelError) -> [UInt8] {
    guard held.count == Self.blockByteCount else {
      throw ReelError(.badMedia, "the encrypted data is truncated: its length is not a multiple of 16")
    }
    let plain = decrypt(held, blockCount: 1)
    held = []
    let padding = Int(plain[Self.blockByteCount - 1])
    guard (1...Self.blockByteCount).contains(padding),
      plain.suffix(padding).allSatisfy({ $0 == UInt8(padding) })
    else {
      throw ReelError(
        .badMedia, "the padding after decryption is wrong: the key is wrong, or the data is damaged",
        advice: "check the key")
    }
    return plain.dropLast(padding)
  }

  // MARK: - Private

  private mutating func decrypt(_ bytes: [UInt8], blockCount: Int) -> [UInt8] {
    var plain = Array(bytes.prefix(blockCount * Self.blockByteCount))
    plain.withUnsafeMutableBytes { cipher.decrypt($0, blockCount: blockCount, vector: &vector) }
    return plain
  }
}
