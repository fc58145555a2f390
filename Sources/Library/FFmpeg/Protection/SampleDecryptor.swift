internal import CFFmpeg
internal import ReelCore

/// Decrypts samples in place, with libavutil's AES.
///
/// Keeps the cipher of the last key. Confined to one thread at a time.
final class SampleDecryptor {
  private static let blockByteCount = 16

  private var blocks: BlockCipher?
  private var stream: StreamCipher?

  /// Decrypts a sample of MP4 (ISO/IEC 23001-7 §9).
  ///
  /// Throws `badMedia` if the subsample map does not fit the sample, and `unsupported` for an unknown scheme.
  func decrypt(
    _ bytes: UnsafeMutableRawBufferPointer, _ protection: SampleProtection, key: ContentKey
  ) throws(ReelError) {
    let whole = [SampleProtection.Subsample(clearByteCount: 0, protectedByteCount: bytes.count)]
    let subsamples = protection.subsamples.isEmpty ? whole : protection.subsamples
    let mapped = subsamples.reduce(0) { $0 + $1.clearByteCount + $1.protectedByteCount }
    guard mapped <= bytes.count else {
      throw ReelError(
        .badMedia, "the map of encrypted bytes counts \(mapped) bytes in a sample of \(bytes.count)")
    }
    switch protection.scheme {
    case .cenc, .cens:
      let cipher = try streamCipher(key)
      cipher.begin(vector: protection.vector)
      Self.forEachStretch(of: bytes, subsamples, protection, keepsPartialBlocks: protection.scheme == .cens) {
        bytes, _ in
        cipher.apply(to: bytes)
      }
    case .cbc1, .cbcs:
      let cipher = try blockCipher(key)
      var vector = protection.vector
      var subsample = -1
      Self.forEachStretch(of: bytes, subsamples, protection, keepsPartialBlocks: true) {
        // With `cbcs`, each subsample starts with the initialization vector (§9.5.1, §10.4).
        if protection.scheme == .cbcs, $1 != subsample { vector = protection.vector }
        subsample = $1
        cipher.decrypt($0, blockCount: $0.count / Self.blockByteCount, vector: &vector)
      }
    default:
      throw ReelError(.unsupported, "samples encrypted as '\(protection.scheme)' can't be decrypted")
    }
  }

  /// Decrypts whole blocks of AES-CBC.
  func decryptBlocks(
    _ bytes: UnsafeMutableRawBufferPointer, vector: inout [UInt8], key: ContentKey
  ) throws(ReelError) {
    try blockCipher(key).decrypt(bytes, blockCount: bytes.count / Self.blockByteCount, vector: &vector)
  }

  // MARK: - Private

  /// Calls `body` with each range of encrypted bytes and the number of its subsample.
  ///
  /// - Parameter keepsPartialBlocks: True if a trailing partial block is in the clear.
  private static func forEachStretch(
    of bytes: UnsafeMutableRawBufferPointer, _ subsamples: [SampleProtection.Subsample],
    _ protection: SampleProtection, keepsPartialBlocks: Bool,
    _ body: (UnsafeMutableRawBufferPointer, Int) -> Void
  ) {
    let hasPattern = protection.cryptBlocks > 0 && protection.skipBlocks > 0
    let (crypt, skip) = (protection.cryptBlocks * blockByteCount, protection.skipBlocks * blockByteCount)
    var offset = 0
    for (index, subsample) in subsamples.enumerated() {
      offset += subsample.clearByteCount
      let end = offset + subsample.protectedByteCount
      if hasPattern {
        var start = offset
        // A truncated pattern applies as far as there are whole blocks (§9.6.1).
        while end - start >= blockByteCount {
          let count = min(crypt, (end - start) / blockByteCount * blockByteCount)
          body(UnsafeMutableRawBufferPointer(rebasing: bytes[start..<start + count]), index)
          start = min(end, start + crypt + skip)
        }
      } else {
        let count = subsample.protectedByteCount
        let used = keepsPartialBlocks ? count - count % blockByteCount : count
        if used > 0 { body(UnsafeMutableRawBufferPointer(rebasing: bytes[offset..<offset + used]), index) }
      }
      offset = end
    }
  }

  private func blockCipher(_ key: ContentKey) throws(ReelError) -> BlockCipher {
    if let blocks, blocks.key == key { return blocks }
    let made = try BlockCipher(key)
    blocks = made
    return made
  }

  private func streamCipher(_ key: ContentKey) throws(ReelError) -> StreamCipher {
    if let stream, stream.key == key { return stream }
    let made = try StreamCipher(key)
    stream = made
    return made
  }
}

/// AES-128 in CBC mode, decrypting. Ownership: frees its `AVAES`.
private final class BlockCipher {
  let key: ContentKey
  private let context: OpaquePointer

  init(_ key: ContentKey) throws(ReelError) {
    guard let context = av_aes_alloc() else { throw ReelError(.internalFault, "out of memory") }
    self.key = key
    self.context = context
    av_aes_init(context, key.bytes, 128, 1)
  }

  deinit { av_free(UnsafeMutableRawPointer(context)) }

  func decrypt(_ bytes: UnsafeMutableRawBufferPointer, blockCount: Int, vector: inout [UInt8]) {
    guard blockCount > 0, let base = bytes.baseAddress else { return }
    let data = base.assumingMemoryBound(to: UInt8.self)
    av_aes_crypt(context, data, data, Int32(clamping: blockCount), &vector, 1)
  }
}

/// AES-128 in CTR mode, whose counter is the last 64 bits (ISO/IEC 23001-7 §9.3). Ownership: frees its `AVAESCTR`.
private final class StreamCipher {
  let key: ContentKey
  private let context: OpaquePointer

  init(_ key: ContentKey) throws(ReelError) {
    guard let context = av_aes_ctr_alloc() else { throw ReelError(.internalFault, "out of memory") }
    self.key = key
    self.context = context
    av_aes_ctr_init(context, key.bytes)
  }

  deinit { av_aes_ctr_free(context) }

  func begin(vector: [UInt8]) { av_aes_ctr_set_full_iv(context, vector) }

  func apply(to bytes: UnsafeMutableRawBufferPointer) {
    guard let base = bytes.baseAddress, !bytes.isEmpty else { return }
    let data = base.assumingMemoryBound(to: UInt8.self)
    av_aes_ctr_crypt(context, data, data, Int32(clamping: bytes.count))
  }
}
