internal import ReelCore

/// The encryption metadata of one track in `moov`.
struct TrackProtection {
  /// An encrypted sample description, or the error if it can't be read.
  typealias Entry = Result<ProtectedEntry, ReelError>

  /// The sample descriptions in order; nil for one in the clear. Their numbers start at 1.
  private var entries: [Entry?] = []
  /// `seig` descriptions of the sample table.
  private(set) var descriptions: [SampleDefaults] = []
  /// From `trex`.
  var defaultDescription = 1
  var defaultSampleSize = 0

  /// The chunks of a track whose samples `moov` lists. Their encryption is in `tables`, by sample description.
  private var chunks: [Chunk] = []
  private var sizes: [UInt32] = []
  private var uniformSize = 0
  private var tables: [Int: SampleTable] = [:]
  /// The error if the sample table can't be read.
  private var fault: ReelError?

  private struct Chunk {
    var offset: Int64
    var firstSample: Int
    var sampleCount: Int
    var description: Int
  }

  /// A track with more samples is treated as damaged.
  private static let sampleLimit = 1 << 26

  var isProtected: Bool { entries.contains { $0 != nil } }

  /// The sample description with a number; nil for one in the clear. Throws if the description can't be read.
  func entry(_ description: Int) throws(ReelError) -> ProtectedEntry? {
    guard entries.indices.contains(description - 1) else { return nil }
    return try entries[description - 1]?.get()
  }

  /// The first encrypted sample description that can be read.
  var firstEntry: ProtectedEntry? { entries.lazy.compactMap { try? $0?.get() }.first }

  /// Adds a sample description.
  mutating func add(_ entry: Entry?) { entries.append(entry) }

  /// Reads the sample table and the related boxes of its track.
  mutating func read(
    _ table: [MP4Box], outer: [MP4Box], in bytes: [UInt8], read: (Range<Int64>) throws -> [UInt8]
  ) {
    do {
      descriptions = try SampleGroups.descriptions(table, in: bytes)
      try readPlaces(table, in: bytes)
      guard !chunks.isEmpty else { return }
      let boxes = table + outer
      let groups = try SampleGroups(table, in: bytes, own: descriptions, outer: nil)
      let counts = chunks.sorted { $0.firstSample < $1.firstSample }.map(\.sampleCount)
      let hasOwn = boxes.contains(where: \.isSampleEncryption)
      let auxiliary =
        hasOwn
        ? nil : try AuxiliaryInformation(boxes, in: bytes, base: 0, sampleCounts: counts, read: read)
      for description in Set(chunks.map(\.description)) {
        tables[description] = try SampleTable(
          boxes, in: bytes, entry: try entry(description), groups: groups, auxiliary: auxiliary)
      }
    } catch {
      fault =
        error as? ReelError
        ?? ReelError(.badMedia, "the encryption metadata can't be read: \(error)")
    }
  }

  /// How the sample at a file position is encrypted; nil if it is in the clear. Throws `badMedia` if the file does
  /// not say.
  func protection(at position: Int64) throws(ReelError) -> SampleProtection? {
    if let fault { throw fault }
    var (low, high) = (0, chunks.count)
    while low < high {
      let middle = (low + high) / 2
      if chunks[middle].offset <= position { low = middle + 1 } else { high = middle }
    }
    if low > 0 {
      let chunk = chunks[low - 1]
      var offset = chunk.offset
      for sample in chunk.firstSample..<chunk.firstSample + chunk.sampleCount {
        if offset == position { return try tables[chunk.description]?.protection(of: sample) }
        if offset > position { break }
        offset += Int64(uniformSize > 0 ? uniformSize : Int(sizes[sample]))
      }
    }
    throw ReelError(.badMedia, "the file does not say how a sample is encrypted", place: .byte(position))
  }

  // MARK: - Private

  /// `stsz`, `stsc` and `stco` (ISO/IEC 14496-12 §8.7).
  private mutating func readPlaces(_ table: [MP4Box], in bytes: [UInt8]) throws(ReelError) {
    guard let stsz = table.first(where: { $0.type == "stsz" }),
      let stsc = table.first(where: { $0.type == "stsc" }),
      let stco = table.first(where: { $0.type == "stco" || $0.type == "co64" })
    else { return }
    var fields = BoxFields(bytes, stsz.body)
    try fields.skip(4)
    uniformSize = try fields.integer(4)
    let sampleCount = try fields.integer(4)
    guard sampleCount <= Self.sampleLimit, uniformSize > 0 || sampleCount <= fields.range.count / 4 else {
      throw ReelError(.badMedia, "a track of \(sampleCount) samples does not list their sizes")
    }
    if uniformSize == 0 {
      sizes.reserveCapacity(sampleCount)
      for _ in 0..<sampleCount { sizes.append(UInt32(try fields.integer(4))) }
    }
    fields = BoxFields(bytes, stsc.body)
    try fields.skip(4)
    var runs: [(first: Int, count: Int, description: Int)] = []
    let runCount = try fields.integer(4)
    guard runCount <= fields.range.count / 12 else { return }
    for _ in 0..<runCount {
      runs.append((try fields.integer(4), try fields.integer(4), try fields.integer(4)))
    }
    fields = BoxFields(bytes, stco.body)
    try fields.skip(4)
    let width = stco.type == "co64" ? 8 : 4
    let chunkCount = try fields.integer(4)
    guard chunkCount <= fields.range.count / width else { return }
    var (run, sample) = (0, 0)
    for index in 0..<chunkCount where sample < sampleCount && !runs.isEmpty {
      while run + 1 < runs.count, runs[run + 1].first <= index + 1 { run += 1 }
      let count = min(runs[run].count, sampleCount - sample)
      chunks.append(
        Chunk(
          offset: Int64(clamping: try fields.number(width)), firstSample: sample, sampleCount: count,
          description: runs[run].description))
      sample += count
    }
    chunks.sort { $0.offset < $1.offset }
  }
}
