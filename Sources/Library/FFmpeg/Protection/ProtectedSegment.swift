package import ReelCore

/// A segment of fragmented MP4 with encrypted samples, which are decrypted in place.
///
/// The segment stays a segment: every byte keeps its position. Boxes that describe encryption become `free` boxes, and
/// sample descriptions get the type of their original format.
package struct ProtectedSegment: Sendable {
  private struct Sample {
    var range: Range<Int>
    var protection: SampleProtection
  }

  /// The requests for the keys that the samples need, one for each key.
  package private(set) var requests: [SampleKeyRequest] = []

  private var bytes: [UInt8]
  /// The position of the segment's first byte in its file.
  private let position: Int64
  private var tables = ProtectionTables()
  private var samples: [Sample] = []
  /// The number of samples, and the number of encrypted bytes. Neither can be greater than the size of the segment.
  private var (sampleCount, encryptedByteCount) = (0, 0)

  /// Reads how the samples of a segment are encrypted.
  ///
  /// Throws `badMedia` if that can't be read or does not fit the segment, or `unsupported` for encryption other than
  /// Common Encryption.
  ///
  /// - Parameters:
  ///   - bytes: The whole segment.
  ///   - position: The position of its first byte in its file.
  ///   - initialization: Its initialization, as encrypted; unused if it has one itself.
  package init(_ bytes: [UInt8], at position: Int64, initialization: [UInt8]?) throws(ReelError) {
    self.bytes = bytes
    self.position = position
    do {
      let boxes = try MP4Box.whole(in: bytes[...], of: "the segment")
      if var initialization, !boxes.contains(where: { $0.type == "moov" }) {
        try tables.takeInitialization(&initialization)
      } else {
        try tables.takeInitialization(&self.bytes)
      }
      let fragments = boxes.filter { $0.type == "moof" }
      guard !fragments.isEmpty || !tables.isProtected else {
        throw ReelError(.badMedia, "the encrypted segment has no movie fragment (moof)")
      }
      for box in fragments { try takeFragment(box, in: bytes) }
    } catch {
      throw error as? ReelError ?? ReelError(.badMedia, "the segment can't be read: \(error)")
    }
  }

  /// Returns an initialization with the descriptions of clear samples. Throws like `init(_:at:initialization:)`.
  package static func clearInitialization(_ bytes: [UInt8]) throws(ReelError) -> [UInt8] {
    var tables = ProtectionTables()
    var bytes = bytes
    try tables.takeInitialization(&bytes)
    return bytes
  }

  /// Returns the segment with clear samples.
  ///
  /// Throws `unsupported` if a key is missing, `badMedia` if a sample does not have the size that its encryption
  /// states, and `CancellationError`.
  package consuming func decrypted(with keys: [KeyID: ContentKey]) throws -> [UInt8] {
    for request in requests {
      guard let id = request.keyID, keys[id] != nil else { throw request.refusal() }
    }
    let decryptor = SampleDecryptor()
    let samples = samples
    try bytes.withUnsafeMutableBytes { bytes in
      for sample in samples {
        try Task.checkCancellation()
        guard let key = keys[sample.protection.keyID] else { continue }
        let bytes = UnsafeMutableRawBufferPointer(rebasing: bytes[sample.range])
        try decryptor.decrypt(bytes, sample.protection, key: key)
      }
    }
    return bytes
  }

  // MARK: - Private

  private mutating func takeFragment(_ box: MP4Box, in segment: [UInt8]) throws {
    let start = position + Int64(box.start)
    var fragment = Array(segment[box.start..<box.end])
    try check(fragment)
    guard tables.isProtected else { return }
    let taken = tables.takeFragment(&fragment, at: start) { [position] range in
      let (lower, upper) = (range.lowerBound - position, range.upperBound - position)
      guard lower >= 0, upper <= segment.count else {
        throw ReelError(.badMedia, "the encryption metadata lies outside of the segment (saio)")
      }
      return Array(segment[Int(lower)..<Int(upper)])
    }
    bytes.replaceSubrange(box.start..<box.end, with: fragment)
    for track in taken.tracks { try add(track) }
  }

  /// Throws unless all of a fragment can be read, since what is left out would stay encrypted.
  private func check(_ fragment: [UInt8]) throws(ReelError) {
    let movie = MP4Box.all(in: fragment[...])
    var count = 0
    for box in movie {
      for track in try MP4Box.whole(in: fragment[box.body], of: "a movie fragment") where track.type == "traf"
      {
        _ = try MP4Box.whole(in: fragment[track.body], of: "a track fragment")
        count += 1
      }
    }
    let tracks = TrackFragment.all(in: fragment[...])
    guard tracks.count == count else { throw ReelError(.badMedia, "a track fragment has no header (tfhd)") }
    for track in tracks where !tables.isProtected(track: track.track) {
      guard !track.boxes.contains(where: \.isSampleEncryption) else {
        throw ReelError(
          .badMedia, "samples of track \(track.track) are encrypted, which the initialization does not state")
      }
    }
  }

  private mutating func add(_ track: FragmentProtection.Track) throws(ReelError) {
    guard track.isComplete else {
      throw ReelError(.badMedia, "the samples of an encrypted track fragment can't be located (trun)")
    }
    sampleCount += track.samples.count
    guard sampleCount <= bytes.count else {
      throw ReelError(.badMedia, "the segment states \(sampleCount) samples and has \(bytes.count) bytes")
    }
    let table = try track.table.get()
    for sample in track.samples where sample.byteCount > 0 {
      guard let protection = try table.protection(of: sample.number) else { continue }
      encryptedByteCount += sample.byteCount
      let start = sample.position.subtractingReportingOverflow(position)
      guard !start.overflow, start.partialValue >= 0, start.partialValue <= bytes.count,
        sample.byteCount <= bytes.count - Int(start.partialValue)
      else {
        throw ReelError(
          .badMedia, "an encrypted sample lies outside of its segment", place: .byte(sample.position))
      }
      guard encryptedByteCount <= bytes.count else {
        throw ReelError(.badMedia, "encrypted samples overlap", place: .byte(sample.position))
      }
      let first = Int(start.partialValue)
      samples.append(Sample(range: first..<first + sample.byteCount, protection: protection))
      guard !requests.contains(where: { $0.keyID == protection.keyID }) else { continue }
      requests.append(
        SampleKeyRequest(
          scheme: protection.scheme.description, codecName: table.entry?.format.description ?? "",
          keyID: protection.keyID, systemData: tables.systemData, position: sample.position))
    }
  }
}

extension ProtectionTables {
  /// Records the encryption metadata of an initialization, and removes it from `bytes`. Throws if some of it can't be
  /// read.
  fileprivate mutating func takeInitialization(_ bytes: inout [UInt8]) throws(ReelError) {
    let movies = try MP4Box.whole(in: bytes[...], of: "the initialization").filter { $0.type == "moov" }
    guard let box = movies.first, movies.count == 1 else {
      throw ReelError(.badMedia, "the initialization has \(movies.count) movie boxes (moov)")
    }
    var movie = Array(bytes[box.start..<box.end])
    do {
      try takeMovie(&movie) { _ in
        throw ReelError(.unsupported, "encrypted samples outside of movie fragments can't be decrypted here")
      }
    } catch {
      throw error as? ReelError ?? ReelError(.badMedia, "the initialization can't be read: \(error)")
    }
    try check()
    for descriptions in MP4Box.all(["moov", "trak", "mdia", "minf", "stbl", "stsd"], in: movie[...]) {
      let entries = try MP4Box.whole(
        in: movie[descriptions.body].dropFirst(8), of: "a sample description (stsd)")
      // The type of an entry that was read is the original format.
      guard let unknown = entries.first(where: { $0.type.description.hasPrefix("enc") }) else { continue }
      throw ReelError(
        .unsupported, found: .encrypted, "the encryption of an '\(unknown.type)' track can't be read")
    }
    bytes.replaceSubrange(box.start..<box.end, with: movie)
  }
}

extension MP4Box {
  /// Returns the boxes in `bytes`. Throws unless they fill it.
  fileprivate static func whole(in bytes: ArraySlice<UInt8>, of name: String) throws(ReelError) -> [MP4Box] {
    let boxes = all(in: bytes)
    let end = boxes.last?.end ?? bytes.startIndex
    guard end == bytes.endIndex else {
      throw ReelError(.badMedia, "\(name) ends within a box", place: .byte(Int64(end)))
    }
    return boxes
  }
}
