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
  let code: FourCC

  /// AES-CTR.
  static let cenc = ProtectionSchemeType(code: "cenc")
  /// AES-CTR with a pattern.
  static let cens = ProtectionSchemeType(code: "cens")
  /// AES-CBC.
  static let cbc1 = ProtectionSchemeType(code: "cbc1")
  /// AES-CBC with a pattern, restarted for each subsample.
  static let cbcs = ProtectionSchemeType(code: "cbcs")

  /// Four characters.
  var description: String { code.description }
}
