internal import ReelCore

/// How the samples of a track or a track fragment are encrypted, by sample number.
struct SampleTable {
  /// The encrypted sample entry; nil for one in the clear.
  let entry: ProtectedEntry?
  private let groups: SampleGroups
  /// The auxiliary information of all samples (from `senc`, or from where `saio` points), and the offset of each
  /// sample's.
  private let auxiliary: [UInt8]
  private let offsets: [Int]
  private let hasSubsamples: [Bool]?
  private let allHaveSubsamples: Bool

  /// A box with more samples is treated as damaged.
  private static let limit = 1 << 22

  /// - Parameters:
  ///   - boxes: The boxes of a sample table and its track, or of a track fragment.
  ///   - auxiliary: The auxiliary information, if there is no `senc`.
  init(
    _ boxes: [MP4Box], in bytes: [UInt8], entry: ProtectedEntry?, groups: SampleGroups,
    auxiliary: AuxiliaryInformation?
  ) throws(ReelError) {
    self.entry = entry
    self.groups = groups
    var offsets: [Int] = []
    if let box = boxes.first(where: \.isSampleEncryption), let entry {
      var fields = BoxFields(bytes, box.body)
      let (_, flags) = try fields.versionAndFlags()
      // In PIFF, this overrides the track's defaults.
      if flags & 1 != 0 { try fields.skip(20) }
      let count = try fields.integer(4)
      allHaveSubsamples = flags & 2 != 0
      hasSubsamples = nil
      let start = fields.range.lowerBound
      guard count <= Self.limit else {
        throw ReelError(.badMedia, "there is encryption metadata for \(count) samples")
      }
      for sample in 0..<count {
        offsets.append(fields.range.lowerBound - start)
        try fields.skip((groups[sample] ?? entry.defaults).sampleVectorByteCount)
        if allHaveSubsamples { try fields.skip(6 * (try fields.integer(2))) }
      }
      // Without vectors and subsample maps, entries have no bytes, so any number of them fits.
      if fields.range.lowerBound == start { offsets = [] }
      self.auxiliary = Array(bytes[start..<box.end])
    } else if let auxiliary, let entry {
      allHaveSubsamples = false
      self.auxiliary = auxiliary.bytes
      var subsamples: [Bool] = []
      var offset = 0
      for (sample, size) in auxiliary.sizes.enumerated() {
        offsets.append(offset)
        subsamples.append(size > (groups[sample] ?? entry.defaults).sampleVectorByteCount)
        offset += size
      }
      hasSubsamples = subsamples
    } else {
      allHaveSubsamples = false
      hasSubsamples = nil
      self.auxiliary = []
    }
    self.offsets = offsets
  }

  /// How a sample is encrypted; nil if it is in the clear. Throws `badMedia` if the file does not say.
  func protection(of sample: Int) throws(ReelError) -> SampleProtection? {
    guard let entry else { return nil }
    let defaults = groups[sample] ?? entry.defaults
    guard defaults.isProtected else { return nil }
    var protection = SampleProtection(
      scheme: entry.scheme, keyID: defaults.keyID, vector: defaults.constantVector,
      cryptBlocks: defaults.cryptBlocks, skipBlocks: defaults.skipBlocks)
    guard offsets.indices.contains(sample) else {
      guard !protection.vector.isEmpty, offsets.isEmpty else {
        throw ReelError(.badMedia, "an encrypted sample has no initialization vector")
      }
      return protection
    }
    guard offsets[sample] <= auxiliary.count else {
      throw ReelError(.badMedia, "the encryption metadata of a sample is truncated")
    }
    var fields = BoxFields(auxiliary, offsets[sample]..<auxiliary.count)
    if defaults.vectorByteCount > 0 {
      protection.vector = SampleDefaults.padded(try fields.bytes(defaults.vectorByteCount))
    }
    guard hasSubsamples?[sample] ?? allHaveSubsamples else { return protection }
    let count = try fields.integer(2)
    protection.subsamples.reserveCapacity(count)
    for _ in 0..<count {
      protection.subsamples.append(
        SampleProtection.Subsample(
          clearByteCount: try fields.integer(2), protectedByteCount: try fields.integer(4)))
    }
    return protection
  }
}

extension SampleDefaults {
  /// The size of a sample's own vector.
  fileprivate var sampleVectorByteCount: Int { isProtected ? vectorByteCount : 0 }
}

/// A protected sample entry: the scheme and `tenc` (ISO/IEC 23001-7 §4.2).
struct ProtectedEntry: Hashable, Sendable {
  var scheme: ProtectionSchemeType
  var defaults: SampleDefaults

  /// Reads the boxes of `sinf`.
  init(_ boxes: [MP4Box], in bytes: [UInt8]) throws(ReelError) {
    guard let type = boxes.first(where: { $0.type == "schm" }) else {
      throw ReelError(.badMedia, "the encryption of a track has no scheme (schm)")
    }
    var fields = BoxFields(bytes, type.body)
    try fields.skip(4)
    scheme = ProtectionSchemeType(code: try fields.fourCC())
    guard let information = boxes.first(where: { $0.type == "schi" }),
      let tenc = MP4Box.all(in: bytes, information.body).first(where: \.isTrackEncryption)
    else {
      throw ReelError(.unsupported, "the track is encrypted as '\(scheme)', which can't be decrypted")
    }
    fields = BoxFields(bytes, tenc.body)
    let (version, _) = try fields.versionAndFlags()
    defaults = try SampleDefaults(&fields, hasPattern: version > 0)
  }
}

/// The vectors and subsample maps of samples outside a `senc` box (`saiz` and `saio`, ISO/IEC 14496-12 §8.7.8).
struct AuxiliaryInformation {
  var sizes: [Int]
  var bytes: [UInt8]

  private static let limit = 1 << 22
  private static let byteLimit = 16 << 20

  /// Nil if there is none.
  ///
  /// - Parameters:
  ///   - base: The position that offsets are relative to.
  ///   - sampleCounts: The number of samples in each chunk, or in each run of a fragment.
  ///   - read: Reads bytes of the file.
  init?(
    _ boxes: [MP4Box], in bytes: [UInt8], base: Int64, sampleCounts: [Int],
    read: (Range<Int64>) throws -> [UInt8]
  ) throws {
    guard let saiz = boxes.first(where: { $0.type == "saiz" }),
      let saio = boxes.first(where: { $0.type == "saio" })
    else { return nil }
    var fields = BoxFields(bytes, saiz.body)
    if try fields.versionAndFlags().flags & 1 != 0 { try fields.skip(8) }
    let size = try fields.integer(1)
    let count = try fields.integer(4)
    guard count <= Self.limit else {
      throw ReelError(.badMedia, "there is encryption metadata for \(count) samples")
    }
    sizes = size > 0 ? [Int](repeating: size, count: count) : try fields.bytes(count).map(Int.init)
    fields = BoxFields(bytes, saio.body)
    let (version, flags) = try fields.versionAndFlags()
    if flags & 1 != 0 { try fields.skip(8) }
    let pieces = try Self.pieces(try fields.integer(4), of: sizes, sampleCounts: sampleCounts)
    self.bytes = []
    for size in pieces {
      let offset = try fields.number(version == 0 ? 4 : 8)
      guard let start = Int64(exactly: offset).map({ base.addingReportingOverflow($0) }), !start.overflow,
        start.partialValue >= 0, size <= Self.byteLimit - self.bytes.count,
        case let end = start.partialValue.addingReportingOverflow(Int64(size)), !end.overflow
      else { throw ReelError(.badMedia, "the encryption metadata lies beyond the end of the file (saio)") }
      self.bytes += try read(start.partialValue..<end.partialValue)
    }
  }

  // MARK: - Private

  /// The sizes of the pieces: one piece for all samples, or one for each chunk or run.
  private static func pieces(
    _ count: Int, of sizes: [Int], sampleCounts: [Int]
  ) throws(ReelError) -> [Int] {
    if count == 1 { return [sizes.reduce(0, +)] }
    guard count == sampleCounts.count, sampleCounts.reduce(0, +) == sizes.count else {
      throw ReelError(.badMedia, "the encryption metadata is in \(count) pieces (saio)")
    }
    var rest = sizes[...]
    return sampleCounts.map { sampleCount in
      defer { rest = rest.dropFirst(sampleCount) }
      return rest.prefix(sampleCount).reduce(0, +)
    }
  }
}

extension MP4Box {
  /// True for `tenc` and PIFF's equivalent box.
  fileprivate var isTrackEncryption: Bool { type == "tenc" || userType == 0x8974_dbce }

  /// True for `senc` and PIFF's equivalent box.
  var isSampleEncryption: Bool { type == "senc" || userType == 0xa239_4f52 }
}
