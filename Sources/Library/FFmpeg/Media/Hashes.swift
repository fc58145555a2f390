internal import CFFmpeg
internal import ReelCore

/// The MD5 hash of bytes that arrive in pieces.
struct MD5Hash: ~Copyable {
  private let context: OpaquePointer

  init() throws(ReelError) {
    guard let context = av_md5_alloc() else { throw ReelError(.internalFault, "out of memory") }
    av_md5_init(context)
    self.context = context
  }

  deinit { av_free(UnsafeMutableRawPointer(context)) }

  func update(_ bytes: UnsafeRawPointer?, count: Int) {
    av_md5_update(context, bytes?.assumingMemoryBound(to: UInt8.self), count)
  }

  /// Returns 32 hexadecimal digits.
  consuming func digest() -> String {
    var digest = [UInt8](repeating: 0, count: 16)
    av_md5_final(context, &digest)
    return digest.hexadecimal
  }
}

/// The SHA-256 hash of bytes (FIPS 180-4).
package enum SHA256Hash {
  /// Returns the 32 bytes of the hash.
  package static func digest(of bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    // A separate context would have to be allocated, which can fail.
    withUnsafeTemporaryAllocation(byteCount: Int(av_sha_size), alignment: 16) { memory in
      let context = OpaquePointer(memory.baseAddress)
      av_sha_init(context, 256)
      av_sha_update(context, bytes, bytes.count)
      av_sha_final(context, &digest)
    }
    return digest
  }
}
