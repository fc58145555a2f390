internal import CFFmpeg

/// The SHA-256 hash of bytes (FIPS 180-4).
package enum SHA256Hash {
  /// The 32 bytes of the hash.
  package static func digest(of bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    // A context of its own would be allocated, which can fail.
    withUnsafeTemporaryAllocation(byteCount: Int(av_sha_size), alignment: 16) { memory in
      let context = OpaquePointer(memory.baseAddress)
      av_sha_init(context, 256)
      av_sha_update(context, bytes, bytes.count)
      av_sha_final(context, &digest)
    }
    return digest
  }
}
