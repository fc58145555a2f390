internal import CFFmpeg
package import ReelCore

/// Undoes AES-128 in CBC mode with PKCS #7 padding, piece by piece, as whole HLS segments are encrypted (RFC 8216
/// §4.3.2.4).
///
/// Confined to one task or thread at a time.
package struct AES128Decryptor: ~Copyable {
  /// Bytes of a key, of an initialization vector, and of a block.
  package static let blockByteCount = 16

  private let context: OpaquePointer
  private var vector: [UInt8]
  /// Bytes that are not a complete block yet, or may be the last block, with padding to remove.
  private var held: [UInt8] = []

  /// Throws `badMedia` for a key or a vector that has not 16 bytes.
  package init(key: [UInt8], initializationVector: [UInt8]) throws(ReelError) {
    guard key.count == Self.blockByteCount else {
      throw ReelError(.badMedia, "the key has \(key.count) bytes, not \(Self.blockByteCount)")
    }
    guard initializationVector.count == Self.blockByteCount else {
      throw ReelError(.badMedia, "the IV has \(initializationVector.count) bytes, not \(Self.blockByteCount)")
    }
    guard let context = av_aes_alloc() else { throw ReelError(.internalFault, "no memory for a cipher") }
    self.context = context
    vector = initializationVector
    av_aes_init(context, key, 128, 1)
  }

  deinit {
    av_free(UnsafeMutableRawPointer(context))
  }

  /// The plain bytes that `chunk`, of any length, makes known; empty if that takes more.
  package mutating func update(_ chunk: [UInt8]) -> [UInt8] {
    held.append(contentsOf: chunk)
    let blockCount = (held.count - 1) / Self.blockByteCount
    guard blockCount > 0 else { return [] }
    let plain = decrypt(held, blockCount: blockCount)
    held.removeFirst(plain.count)
    return plain
  }

  /// The last plain bytes, without the padding. Throws `badMedia` if the length or the padding is wrong, as it is
  /// after a wrong key.
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
        .badMedia, "the padding after decryption is wrong: the key is wrong, or the data is damaged")
    }
    return plain.dropLast(padding)
  }

  // MARK: - Private

  private mutating func decrypt(_ bytes: [UInt8], blockCount: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: blockCount * Self.blockByteCount) { buffer, count in
      count = blockCount * Self.blockByteCount
      guard let output = buffer.baseAddress else { return }
      av_aes_crypt(context, output, bytes, Int32(blockCount), &vector, 1)
    }
  }
}
