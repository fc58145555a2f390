internal import ReelCore

/// Decrypts the encrypted packets of one container.
///
/// Confined to one thread at a time.
final class ContainerDecryptor {
  private let source: ProtectedSource?
  private let keys: (any SampleKeys)?
  private let cipher = SampleDecryptor()

  /// - Parameter source: The source that an MP4 file is read through; nil for other containers.
  init(source: ProtectedSource?, keys: (any SampleKeys)?) {
    self.source = source
    self.keys = keys
  }

  /// True if the container says that some samples may be encrypted.
  var isNeeded: Bool { source?.tables.isProtected ?? false }

  /// Decrypts a packet of MP4 or Matroska.
  ///
  /// Throws `unsupported` if there is no key, `badMedia` if the file does not state how the sample is
  /// encrypted, and the errors of `keys`.
  func decrypt(_ packet: Packet, of stream: StreamInfo) throws {
    if let source {
      try decrypt(packet, of: stream, source.tables)
    } else if stream.contentEncryptionKeyID != nil {
      try decryptBlock(packet, of: stream)
    }
  }

  /// Decrypts an access unit or an audio frame of MPEG-TS.
  ///
  /// - Parameter position: The position in the source of the PES packet that it begins in; nil if that is not known.
  func decryptTransport(_ packet: Packet, of stream: StreamInfo, at position: Int64?) throws {
    guard keys != nil || stream.isEncrypted else { return }
    var request = SampleKeyRequest(
      scheme: "SAMPLE-AES", codecName: stream.codecName, position: position ?? 0)
    request.isAnnounced = stream.isEncrypted
    guard let keys else { throw request.refusal() }
    guard case .key(let key, let vector) = try keys.key(for: request) else { return }
    guard let vector else {
      throw ReelError(
        .unsupported, found: .encrypted,
        "the \(stream.codecName) samples are encrypted (SAMPLE-AES), and no IV is stated for them")
    }
    let decryptor = TransportDecryptor(cipher: cipher, key: key, vector: vector)
    if stream.videoCodec == .h264 {
      let plain = try packet.withBytes { bytes throws in try decryptor.accessUnit(bytes) }
      try packet.replaceBytes(with: plain)
    } else if let codec = stream.audioCodec, [.aac, .ac3, .eac3].contains(codec) {
      try packet.withMutableBytes { bytes throws(ReelError) in
        try decryptor.audioFrames(bytes, codec: codec)
      }
    } else {
      throw ReelError(
        .unsupported, found: .encrypted,
        "SAMPLE-AES is not defined for \(stream.codecName) in MPEG-TS")
    }
    packet.isDecrypted = true
  }

  // MARK: - Private

  private func decrypt(_ packet: Packet, of stream: StreamInfo, _ tables: ProtectionTables) throws {
    guard tables.isProtected(track: stream.number) else {
      guard !stream.isEncrypted, !packet.isEncrypted else {
        throw ReelError(
          .unsupported, found: .encrypted,
          "the \(stream.codecName) samples are encrypted (Common Encryption) with metadata that can't be read"
        )
      }
      return
    }
    guard let position = packet.position else {
      throw ReelError(.badMedia, "the position of an encrypted sample is unknown")
    }
    var request = SampleKeyRequest(scheme: "", codecName: stream.codecName, position: position)
    request.systemData = tables.systemData
    let protection: SampleProtection
    do {
      guard let found = try tables.protection(track: stream.number, at: position) else { return }
      protection = found
    } catch {
      // A missing key is reported first.
      if let entry = tables.entry(track: stream.number) {
        request.scheme = entry.scheme.description
        request.keyID = entry.defaults.keyID
        _ = try key(for: request)
      }
      throw error
    }
    request.scheme = protection.scheme.description
    request.keyID = protection.keyID
    guard case .key(let key, _) = try key(for: request) else { return }
    try packet.withMutableBytes { bytes throws(ReelError) in
      try cipher.decrypt(bytes, protection, key: key)
    }
    packet.isDecrypted = true
  }

  /// Decrypts a WebM block ("WebM Encryption"). It has a signal byte that says whether it is encrypted, the vector,
  /// optional partition offsets that separate clear parts from encrypted ones, and the frame.
  private func decryptBlock(_ packet: Packet, of stream: StreamInfo) throws {
    var bytes = packet.withBytes { Array($0) }
    guard let signal = bytes.first, signal & 0xfc == 0 else {
      throw ReelError(.badMedia, "an encrypted WebM block starts with a reserved byte")
    }
    guard signal & 1 != 0 else { return try packet.replaceBytes(with: Array(bytes.dropFirst())) }
    let request = SampleKeyRequest(
      scheme: "WebM", codecName: stream.codecName,
      keyID: stream.contentEncryptionKeyID.flatMap { KeyID(bytes: $0) },
      position: packet.position ?? 0)
    guard case .key(let key, _) = try key(for: request) else { return }
    var fields = BoxFields(bytes, 1..<bytes.count)
    var protection = SampleProtection(
      scheme: .cenc, keyID: request.keyID ?? .zero, vector: SampleDefaults.padded(try fields.bytes(8)))
    if signal & 2 != 0 {
      var ends: [Int] = []
      for _ in 0..<(try fields.integer(1)) { ends.append(try fields.integer(4)) }
      ends.append(fields.range.count)
      if ends.count % 2 == 1 { ends.append(fields.range.count) }
      var start = 0
      for index in stride(from: 0, to: ends.count, by: 2) {
        guard start <= ends[index], ends[index] <= ends[index + 1], ends[index + 1] <= fields.range.count
        else {
          throw ReelError(.badMedia, "the partitions of an encrypted WebM block do not fit in it")
        }
        protection.subsamples.append(
          SampleProtection.Subsample(
            clearByteCount: ends[index] - start, protectedByteCount: ends[index + 1] - ends[index]))
        start = ends[index + 1]
      }
    }
    bytes.removeFirst(fields.range.lowerBound)
    let map = protection
    if !bytes.isEmpty {
      try bytes.withUnsafeMutableBytes { bytes in
        try cipher.decrypt(bytes, map, key: key)
      }
    }
    try packet.replaceBytes(with: bytes)
    packet.isDecrypted = true
  }

  private func key(for request: SampleKeyRequest) throws -> SampleKey {
    guard let keys else { throw request.refusal() }
    return try keys.key(for: request)
  }
}
