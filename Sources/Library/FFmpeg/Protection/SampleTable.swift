internal import ReelCore

/// The encryption of the samples of a track or a track fragment, by sample number.
struct SampleTable {
  /// The encrypted sample entry; nil for one in the clear.
  let entry: ProtectedEntry?
  private let groups: SampleGroups
  /// The auxiliary information of all samples (from `senc`, or from the position in `saio`), and the offset
  /// of each sample's.
  private let auxiliary: [UInt8]
  private let offsets: [Int]
  private let hasSubsamples: [Bool]?
  private let allHaveSubsamples: Bool

  /// - Parameters:
  ///   - boxes: The boxes of a sample table and its track, or of a track fragment.
  ///   - base: The position that offsets are relative to.
  ///   - sampleCounts: The number of samples in each chunk, or in each run of a fragment.
  ///   - read: Reads bytes of the file.
  init(
    _ boxes: [MP4Box], in bytes: [UInt8], entry: ProtectedEntry?, groups: SampleGroups, base: Int64,
    sampleCounts: [Int], read: (Range<Int64>) throws -> [UInt8]
  ) throws {
    self.entry = entry
    self.groups = groups
    var offsets: [Int] = []
    if let box = boxes.first(where: \.isSampleEncryption), let entry {
      var fields = BoxFields(bytes, box.body)
      let (_, flags) = try fields.versionAndFlags()
      // In PIFF, this overrides the track's defaults.
      if flags & 1 != 0 { try fields.skip(20) }
      let count = min(try fields.integer(4), sampleCounts.reduce(0, +))
      allHaveSubsamples = flags & 2 != 0
      hasSubsamples = nil
      let start = fields.range.lowerBound
      for sample in 0..<count {
        offsets.append(fields.range.lowerBound - start)
        try fields.skip((groups[sample] ?? entry.defaults).sampleVectorByteCount)
        if allHaveSubsamples { try fields.skip(6 * (try fields.integer(2))) }
      }
      // Without vectors and subsample maps, entries have no bytes, so any number of them fits.
      if fields.range.lowerBound == start { offsets = [] }
      self.auxiliary = Array(bytes[start..<box.end])
    } else if let entry,
      let auxiliary = try AuxiliaryInformation(
        boxes, in: bytes, base: base, sampleCounts: sampleCounts, read: read)
    {
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

  /// Returns the encryption of a sample; nil if it is in the clear. Throws `badMedia` if the file does not
  /// state it.
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
  /// The sample entry's type before it was encrypted.
  var format: FourCC
  var scheme: FourCC
  var defaults: SampleDefaults

  /// Reads the boxes of `sinf`.
  init(_ boxes: [MP4Box], in bytes: [UInt8]) throws(ReelError) {
    guard let original = boxes.first(where: { $0.type == "frma" }),
      let type = boxes.first(where: { $0.type == "schm" })
    else {
      throw ReelError(.badMedia, "the encryption of a track has no original format (frma) or scheme (schm)")
    }
    var fields = BoxFields(bytes, original.body)
    format = try fields.fourCC()
    fields = BoxFields(bytes, type.body)
    try fields.skip(4)
    scheme = try fields.fourCC()
    guard let information = boxes.first(where: { $0.type == "schi" }),
      let tenc = MP4Box.all(in: bytes[information.body]).first(where: \.isTrackEncryption)
    else {
      throw ReelError(
        .unsupported, found: .encrypted,
        "the track is encrypted as '\(scheme)', which can't be decrypted")
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
    let count = min(try fields.integer(4), sampleCounts.reduce(0, +))
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

  /// Returns the sizes of the pieces: one piece for all samples, or one for each chunk or run.
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

  /// True if it says of the samples of a track or a track fragment how they are encrypted.
  func describesEncryption(in bytes: [UInt8]) -> Bool {
    switch type {
    case "saiz", "saio": true
    case "sgpd", "sbgp": bytes[body].dropFirst(4).starts(with: "seig".utf8)
    default: isSampleEncryption
    }
  }
}

/// The encryption parameters from `tenc`, for all samples of a track, or from a `seig` description, for the samples
/// of its group (ISO/IEC 23001-7 §6, §8.2).
struct SampleDefaults: Hashable, Sendable {
  var isProtected: Bool
  var cryptBlocks = 0
  var skipBlocks = 0
  /// The size of each sample's own vector; 0 if all samples use `constantVector`.
  var vectorByteCount: Int
  /// 16 bytes; empty if each sample has its own vector.
  var constantVector: [UInt8] = []
  var keyID: KeyID

  /// Reads a `seig` description, or the body of a `tenc` box after its version and flags.
  ///
  /// - Parameter hasPattern: False for version 0 of `tenc`, where the pattern byte is reserved.
  init(_ fields: inout BoxFields, hasPattern: Bool) throws(ReelError) {
    try fields.skip(1)
    let pattern = try fields.integer(1)
    if hasPattern { (cryptBlocks, skipBlocks) = (pattern >> 4, pattern & 0xf) }
    isProtected = try fields.integer(1) == 1
    vectorByteCount = try fields.integer(1)
    guard let keyID = KeyID(bytes: try fields.bytes(ContentKey.byteCount)) else {
      throw ReelError(.badMedia, "the key ID does not have 16 bytes")
    }
    self.keyID = keyID
    guard [0, 8, 16].contains(vectorByteCount) else {
      throw ReelError(
        .badMedia, "an initialization vector of \(vectorByteCount) bytes (ISO/IEC 23001-7 §9.1)")
    }
    guard isProtected, vectorByteCount == 0 else { return }
    let count = try fields.integer(1)
    guard count == 8 || count == 16 else {
      throw ReelError(.badMedia, "a constant initialization vector of \(count) bytes (ISO/IEC 23001-7 §9.1)")
    }
    constantVector = Self.padded(try fields.bytes(count))
  }

  /// Extends an 8-byte vector with an 8-byte block counter of zero.
  static func padded(_ vector: [UInt8]) -> [UInt8] {
    vector + [UInt8](repeating: 0, count: max(0, ContentKey.byteCount - vector.count))
  }
}

/// The sample groups with their own keys (`sbgp` and `sgpd` of type `seig`, ISO/IEC 14496-12 §8.9).
struct SampleGroups {
  /// The first sample of each run and the run's description; nil for the track's defaults.
  private var runs: [(start: Int, defaults: SampleDefaults?)] = []
  /// A file with more runs is treated as damaged.
  private static let limit = 1 << 20

  /// - Parameters:
  ///   - boxes: The boxes of a sample table or a track fragment.
  ///   - outer: For a fragment, the descriptions of the sample table.
  init(
    _ boxes: [MP4Box], in bytes: [UInt8], own: [SampleDefaults], outer: [SampleDefaults]?
  ) throws(ReelError) {
    for box in boxes where box.type == "sbgp" {
      var fields = BoxFields(bytes, box.body)
      let (version, _) = try fields.versionAndFlags()
      guard try fields.fourCC() == "seig" else { continue }
      if version == 1 { try fields.skip(4) }
      let count = try fields.integer(4)
      guard count <= Self.limit else {
        throw ReelError(.badMedia, "\(count) groups of encrypted samples are too many")
      }
      var start = 0
      for _ in 0..<count {
        let sampleCount = try fields.integer(4)
        let index = try fields.integer(4)
        runs.append((start, try Self.description(index, own: own, outer: outer)))
        start += sampleCount
      }
      runs.append((start, nil))
    }
  }

  /// The description of a sample's group; nil for the track's defaults.
  subscript(sample: Int) -> SampleDefaults? {
    let next = runs.indices.bisect { runs[$0].start > sample }
    return next > 0 ? runs[next - 1].defaults : nil
  }

  /// Reads the `seig` descriptions of a sample table or a track fragment.
  static func descriptions(_ boxes: [MP4Box], in bytes: [UInt8]) throws(ReelError) -> [SampleDefaults] {
    var found: [SampleDefaults] = []
    for box in boxes where box.type == "sgpd" {
      var fields = BoxFields(bytes, box.body)
      let (version, _) = try fields.versionAndFlags()
      guard try fields.fourCC() == "seig" else { continue }
      let length = version == 1 ? try fields.integer(4) : 0
      if version >= 2 { try fields.skip(4) }
      let count = try fields.integer(4)
      for _ in 0..<count {
        let own = version == 1 && length == 0 ? try fields.integer(4) : length
        let start = fields.range.lowerBound
        found.append(try SampleDefaults(&fields, hasPattern: true))
        try fields.skip(max(0, own - (fields.range.lowerBound - start)))
      }
    }
    return found
  }

  // MARK: - Private

  /// Indexes from 0x10001 refer to the fragment's own descriptions (ISO/IEC 14496-12 §8.9.4); 0 is no group.
  private static func description(
    _ index: Int, own: [SampleDefaults], outer: [SampleDefaults]?
  ) throws(ReelError) -> SampleDefaults? {
    guard index > 0 else { return nil }
    let outer = outer ?? []
    // Some fragments number their own descriptions from 1 if the sample table has none.
    let (list, place) =
      index > 0x10000 ? (own, index - 0x10000) : outer.isEmpty ? (own, index) : (outer, index)
    guard place <= list.count else {
      throw ReelError(.badMedia, "a group of encrypted samples has no description")
    }
    return list[place - 1]
  }
}

extension BoxFields {
  /// Reads a box that describes encrypted samples.
  init(_ bytes: [UInt8], _ range: Range<Int>) {
    self.init(bytes[range], of: "a box that describes encrypted samples")
  }
}
