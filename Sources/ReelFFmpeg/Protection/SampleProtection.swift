internal import ReelCore

/// How one sample is encrypted (ISO/IEC 23001-7 §9).
struct SampleProtection: Hashable, Sendable {
  /// A part of a sample: clear bytes, then encrypted ones.
  struct Subsample: Hashable, Sendable {
    var clearByteCount: Int
    var protectedByteCount: Int
  }

  var scheme: ProtectionSchemeType
  var keyID: KeyID
  /// 16 bytes.
  var vector: [UInt8]
  /// The pattern: how many 16-byte blocks are encrypted before `skipBlocks` are left clear, repeatedly. If both are
  /// 0, all blocks are encrypted.
  var cryptBlocks = 0
  var skipBlocks = 0
  /// Empty if the whole sample is encrypted.
  var subsamples: [Subsample] = []
}

/// The scheme of a protected sample entry (`schm`, ISO/IEC 23001-7 §4).
struct ProtectionSchemeType: Hashable, Sendable, CustomStringConvertible {
  let code: UInt32

  /// AES-CTR.
  static let cenc = ProtectionSchemeType(code: 0x6365_6e63)
  /// AES-CTR with a pattern.
  static let cens = ProtectionSchemeType(code: 0x6365_6e73)
  /// AES-CBC.
  static let cbc1 = ProtectionSchemeType(code: 0x6362_6331)
  /// AES-CBC with a pattern, restarted for each subsample.
  static let cbcs = ProtectionSchemeType(code: 0x6362_6373)

  /// Four characters.
  var description: String {
    String(
      decoding: (0..<4).map { UInt8(truncatingIfNeeded: code >> (24 - 8 * UInt32($0))) }.map {
        (0x20...0x7e).contains($0) ? $0 : UInt8(ascii: "?")
      }, as: UTF8.self)
  }
}
