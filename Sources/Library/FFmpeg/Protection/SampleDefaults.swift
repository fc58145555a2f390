internal import ReelCore

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
    var (low, high) = (0, runs.count)
    while low < high {
      let middle = (low + high) / 2
      if runs[middle].start <= sample { low = middle + 1 } else { high = middle }
    }
    return low > 0 ? runs[low - 1].defaults : nil
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
