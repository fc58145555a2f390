internal import CFFmpeg
package import ReelCore

/// Supplies a container reader with the keys of encrypted samples.
///
/// It is called on the reader's thread, once for each encrypted sample, and may block.
package protocol SampleKeys: AnyObject, Sendable {
  /// Returns the key of a sample. Throws if there is none; later samples are then not read.
  func key(for request: SampleKeyRequest) throws -> SampleKey
}

/// Describes a sample whose key is needed.
package struct SampleKeyRequest: Sendable {
  /// The scheme as the media names it: `cenc`, `cens`, `cbc1`, `cbcs`, `SAMPLE-AES`, or `WebM`.
  package var scheme: String
  /// libavcodec's name of the codec.
  package var codecName: String
  /// The id of the key; nil if the media names none, as in MPEG-TS.
  package var keyID: KeyID?
  /// The whole `pssh` boxes of the file so far (ISO/IEC 23001-7 §8.1).
  package var systemData: [[UInt8]] = []
  /// MPEG-TS: true if the stream type says that the stream is encrypted.
  package var isAnnounced = true
  /// The position of the sample in the container's bytes.
  package var position: Int64

  /// The names of the DRM systems that `systemData` is for.
  package var systems: [String] {
    var names: [String] = []
    for data in systemData where data.count >= 28 {
      let identifier = data[12..<28].hexadecimal
      let name = ProtectionSystem(id: identifier)?.name ?? identifier
      if !names.contains(name) { names.append(name) }
    }
    return names
  }

  /// Returns the error for a sample without a key.
  ///
  /// - Parameter systems: DRM systems that are known from elsewhere, such as the manifest.
  package func refusal(systems: [String] = []) -> ReelError {
    var names = systems
    for name in self.systems where !names.contains(name) { names.append(name) }
    var details = [scheme]
    if !names.isEmpty { details.append(names.joined(separator: ", ")) }
    if let keyID { details.append("key id \(keyID)") }
    let kind = ["cenc", "cens", "cbc1", "cbcs"].contains(scheme) ? "Common Encryption: " : ""
    return ReelError(
      .unsupported, found: .encrypted,
      "the \(codecName) samples are encrypted (\(kind)\(details.joined(separator: "; "))), and there is no key for them",
      advice: "give the key with --key or --key-file, or through a KeyProvider")
  }
}

package enum SampleKey: Sendable {
  /// - Parameter vector: An IV of 16 bytes, for media that states none itself (MPEG-TS).
  case key(ContentKey, vector: [UInt8]?)
  case clear
}

/// Decrypts samples in place, with libavutil's AES.
///
/// Keeps the cipher of the last key. Confined to one thread at a time.
final class SampleDecryptor {
  private static let blockByteCount = BlockCipher.blockByteCount

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
    default: try Self.check(protection.scheme)
    }
  }

  /// Throws `unsupported` for an unknown scheme.
  static func check(_ scheme: FourCC) throws(ReelError) {
    guard [.cenc, .cens, .cbc1, .cbcs].contains(scheme) else {
      throw ReelError(
        .unsupported, found: .encrypted, "samples encrypted as '\(scheme)' can't be decrypted")
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
final class BlockCipher {
  static let blockByteCount = 16

  let key: ContentKey
  private let context: OpaquePointer

  init(_ key: ContentKey) throws(ReelError) {
    guard let context = av_aes_alloc() else { throw ReelError(.internalFault, "out of memory") }
    self.key = key
    self.context = context
    av_aes_init(context, key.bytes, 128, 1)
  }

  deinit { av_free(UnsafeMutableRawPointer(context)) }

  /// Decrypts in place. `vector` is then that of the next block.
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

/// The encryption of one sample (ISO/IEC 23001-7 §9).
struct SampleProtection: Hashable, Sendable {
  /// A part of a sample: clear bytes, then encrypted ones.
  struct Subsample: Hashable, Sendable {
    var clearByteCount: Int
    var protectedByteCount: Int
  }

  var scheme: FourCC
  var keyID: KeyID
  /// 16 bytes.
  var vector: [UInt8]
  /// The pattern: the number of encrypted 16-byte blocks before `skipBlocks` clear ones, repeatedly. If both
  /// are 0, all blocks are encrypted.
  var cryptBlocks = 0
  var skipBlocks = 0
  /// Empty if the whole sample is encrypted.
  var subsamples: [Subsample] = []
}

/// The schemes of protected sample entries (`schm`, ISO/IEC 23001-7 §4).
extension FourCC {
  /// AES-CTR.
  static let cenc: FourCC = "cenc"
  /// AES-CTR with a pattern.
  static let cens: FourCC = "cens"
  /// AES-CBC.
  static let cbc1: FourCC = "cbc1"
  /// AES-CBC with a pattern, restarted for each subsample.
  static let cbcs: FourCC = "cbcs"
}

/// Judges by the decoded frames whether the key of a stream is right. With a wrong key, samples become noise, from
/// which a decoder makes damaged frames or none.
struct KeyTrust {
  /// The presentation time of the first encrypted access unit; nil before it.
  private var firstTicks: Int64?
  private var hasDecrypted = false
  /// The number of units that the decoder had rejected before that one.
  private var rejectedCount = 0
  private var isTrusted = false
  /// The error, once the key turns out to be wrong or the media damaged.
  private(set) var fault: ReelError?

  static let advice = "the samples were decrypted, but the key may be wrong"

  /// Records an access unit that is sent to the decoder, and how many units the decoder has rejected so far.
  mutating func record(_ packet: Packet, rejectedCount: Int) {
    guard packet.isDecrypted, !hasDecrypted else { return }
    hasDecrypted = true
    self.rejectedCount = rejectedCount
    firstTicks = packet.presentationTicks
  }

  /// Records a decoded frame, and how many units the decoder has rejected so far. The first frame that was encrypted
  /// decides.
  mutating func record(_ frame: Frame, rejectedCount: Int) {
    guard hasDecrypted, !isTrusted, fault == nil else { return }
    if let firstTicks, let ticks = frame.presentationTicks, ticks < firstTicks { return }
    if frame.isDamaged || rejectedCount > self.rejectedCount {
      fault = ReelError(
        .badMedia, "the first encrypted frame can't be decoded without errors", advice: Self.advice)
    } else {
      isTrusted = true
    }
  }

  /// Advice if a stream gives no frame at all; nil if that has nothing to do with a key.
  var adviceWithoutFrame: String? { hasDecrypted && !isTrusted ? Self.advice : nil }
}
