public import ReelCore

/// Where a container's reader gets the keys of encrypted samples.
///
/// It is asked on the reader's thread, once for each encrypted sample, and may block.
public protocol SampleKeys: AnyObject, Sendable {
  /// The key of a sample. Throws where there is none: samples behind it are not read.
  func key(for request: SampleKeyRequest) throws -> SampleKey
}

/// What is known of a sample whose key is wanted.
public struct SampleKeyRequest: Sendable {
  /// The scheme as the media names it: `cenc`, `cens`, `cbc1`, `cbcs`, `SAMPLE-AES`, or `WebM`.
  public var scheme: String
  /// libavcodec's name of the codec.
  public var codecName: String
  /// Nil where the media names none, as MPEG-TS.
  public var keyID: KeyID?
  /// `pssh` boxes of the file so far (ISO/IEC 23001-7 §8.1), whole.
  public var systemData: [[UInt8]] = []
  /// MPEG-TS: the stream's type says that it is encrypted.
  public var isAnnounced = true
  /// Where the sample begins in the container's bytes.
  public var position: Int64

  /// The names of the systems that `systemData` is for.
  public var systems: [String] {
    var names: [String] = []
    for data in systemData where data.count >= 28 {
      let identifier = data[12..<28].hexadecimal
      let name = ProtectionSystem.name(ofID: identifier) ?? identifier
      if !names.contains(name) { names.append(name) }
    }
    return names
  }

  /// What is thrown where there is no key.
  ///
  /// - Parameter systems: the systems that are known from elsewhere.
  public func refusal(systems: [String] = []) -> ReelError {
    var names = systems
    for name in self.systems where !names.contains(name) { names.append(name) }
    var details = [scheme]
    if !names.isEmpty { details.append(names.joined(separator: ", ")) }
    if let keyID { details.append("key id \(keyID)") }
    let kind = ["cenc", "cens", "cbc1", "cbcs"].contains(scheme) ? "Common Encryption: " : ""
    return ReelError(
      .unsupported,
      "the \(codecName) samples are encrypted (\(kind)\(details.joined(separator: "; "))), and there is no key for them",
      advice: "give the key with --key or --key-file, or through a KeyProvider")
  }
}

/// The key of a sample.
public enum SampleKey: Sendable {
  /// - Parameter vector: 16 bytes, where the media states none (MPEG-TS).
  case key(ContentKey, vector: [UInt8]?)
  /// The sample is in the clear.
  case clear
}
