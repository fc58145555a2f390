package import ReelCore

/// Supplies a container reader with the keys of encrypted samples.
///
/// It is called on the reader's thread, once for each encrypted sample, and may block.
package protocol SampleKeys: AnyObject, Sendable {
  /// The key of a sample. Throws if there is none; later samples are then not read.
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
      let name = ProtectionSystem.name(ofID: identifier) ?? identifier
      if !names.contains(name) { names.append(name) }
    }
    return names
  }

  /// The error for a sample without a key.
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
      .unsupported,
      "the \(codecName) samples are encrypted (\(kind)\(details.joined(separator: "; "))), and there is no key for them",
      advice: "give the key with --key or --key-file, or through a KeyProvider")
  }
}

/// The key of a sample.
package enum SampleKey: Sendable {
  /// - Parameter vector: An IV of 16 bytes, for media that states none itself (MPEG-TS).
  case key(ContentKey, vector: [UInt8]?)
  /// The sample is in the clear.
  case clear
}
