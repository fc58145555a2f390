import ReelFFmpeg

/// The first 128 bits of the SHA-256 hash (FIPS 180-4) of a source's URL as the list has it.
///
/// It identifies the source in results files, makes its name and its folder, and chooses its shard. It is the same on
/// every machine, and what `printf %s URL | sha256sum` prints begins with it.
struct SourceHash: Hashable, Sendable {
  /// The first 8 bytes, big-endian.
  let high: UInt64
  /// The next 8 bytes.
  let low: UInt64

  init(_ text: String) {
    let digest = SHA256Hash.digest(of: Array(text.utf8))
    high = digest[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    low = digest[8..<16].reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// The first 16 hexadecimal digits.
  var text: String {
    let digits = String(high, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}
