internal import ReelCore

/// The encryption metadata of one track in `moov`.
struct TrackProtection {
  /// An encrypted sample description, or the error if it can't be read.
  typealias Entry = Result<ProtectedEntry, ReelError>

  /// The sample descriptions in order; nil for one in the clear. Their numbers start at 1.
  private var entries: [Entry?] = []
  /// `seig` descriptions of the sample table.
  private(set) var descriptions: [SampleDefaults] = []
  /// The values of samples that fragments do not state.
  var defaults: FragmentDefaults?

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

  /// Returns the sample description with a number; nil for one in the clear. Throws if the description can't
  /// be read.
  func entry(_ description: Int) throws(ReelError) -> ProtectedEntry? {
    guard entries.indices.contains(description - 1) else { return nil }
    return try entries[description - 1]?.get()
  }

  /// Throws unless all that its encrypted samples need is a key.
  func check() throws(ReelError) {
    for case let entry? in entries { try SampleDecryptor.check(try entry.get().scheme) }
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
      let groups = try SampleGroups(table, in: bytes, own: descriptions, outer: nil)
      let counts = chunks.sorted { $0.firstSample < $1.firstSample }.map(\.sampleCount)
      for description in Set(chunks.map(\.description)) {
        tables[description] = try SampleTable(
          table + outer, in: bytes, entry: try entry(description), groups: groups, base: 0,
          sampleCounts: counts, read: read)
      }
    } catch {
      fault = ReelError(protection: error)
    }
  }

  /// Returns the encryption of the sample at a file position; nil if it is in the clear. Throws `badMedia` if
  /// the file does not state it.
  func protection(at position: Int64) throws(ReelError) -> SampleProtection? {
    if let fault { throw fault }
    let next = chunks.indices.bisect { chunks[$0].offset > position }
    if next > 0 {
      let chunk = chunks[next - 1]
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
    let runCount = try fields.integer(4)
    guard runCount <= fields.range.count / 12 else { return }
    var runs: [(first: Int, count: Int, description: Int)] = []
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
      let offset = Int64(clamping: try fields.number(width))
      chunks.append(
        Chunk(offset: offset, firstSample: sample, sampleCount: count, description: runs[run].description))
      sample += count
    }
    chunks.sort { $0.offset < $1.offset }
  }
}

/// The encryption metadata of an MP4 file (ISO/IEC 23001-7), by the file position of each sample.
///
/// The boxes with that metadata are blanked out for the demuxer. libavformat's mov does not support sample groups,
/// several sample descriptions per track, or a mix of constant and per-sample vectors. It sees a file in the clear,
/// and its packets are decrypted afterwards.
struct ProtectionTables {
  /// Whole `pssh` boxes, in file order.
  private(set) var systemData: [[UInt8]] = []
  private var tracks: [Int: TrackProtection] = [:]
  private var fragments: [FragmentProtection] = []

  /// The number of fragments remembered in a file that is read forward only. A demuxer does not read far ahead.
  static let keptFragmentCount = 16
  private static let systemDataLimit = 64

  /// True if samples of some track may be encrypted.
  var isProtected: Bool { tracks.values.contains(where: \.isProtected) }

  func isProtected(track: Int) -> Bool { tracks[track]?.isProtected ?? false }

  /// Returns the default encryption of a track's samples; nil if it is not known.
  func entry(track: Int) -> ProtectedEntry? { tracks[track]?.firstEntry }

  /// Returns the encryption of the sample of a track at a file position; nil if it is in the clear.
  ///
  /// Throws `badMedia` if the file does not state it.
  func protection(track: Int, at position: Int64) throws(ReelError) -> SampleProtection? {
    guard let known = tracks[track], known.isProtected else { return nil }
    for fragment in fragments.reversed() {
      guard let (table, sample) = fragment.find(track: track, at: position) else { continue }
      return try table.get().protection(of: sample)
    }
    return try known.protection(at: position)
  }

  /// Records the encryption metadata of a `moov` box and removes it from `bytes`.
  ///
  /// - Parameters:
  ///   - bytes: The whole box.
  ///   - read: Reads bytes of the file.
  mutating func takeMovie(_ bytes: inout [UInt8], read: (Range<Int64>) throws -> [UInt8]) throws {
    takeSystemData("moov", in: &bytes)
    for track in MP4Box.all(["moov", "trak"], in: bytes[...]) {
      try takeTrack(track, in: &bytes, read: read)
    }
    for (id, defaults) in FragmentDefaults.all(inMovie: bytes[...]) { tracks[id]?.defaults = defaults }
  }

  /// Records the encryption metadata of a `moof` box and removes it from `bytes`.
  ///
  /// - Parameters:
  ///   - bytes: The whole box.
  ///   - position: Its position in the file.
  ///   - keepsAll: True if earlier fragments may be read again.
  mutating func takeFragment(
    _ bytes: inout [UInt8], at position: Int64, keepsAll: Bool, read: (Range<Int64>) throws -> [UInt8]
  ) {
    guard isProtected else { return }
    let fragment = takeFragment(&bytes, at: position, read: read)
    fragments.removeAll { $0.position == position }
    fragments.append(fragment)
    if !keepsAll, fragments.count > Self.keptFragmentCount { fragments.removeFirst() }
  }

  /// Returns the encryption metadata of a `moof` box and removes it from `bytes`.
  mutating func takeFragment(
    _ bytes: inout [UInt8], at position: Int64, read: (Range<Int64>) throws -> [UInt8]
  ) -> FragmentProtection {
    takeSystemData("moof", in: &bytes)
    let fragment = FragmentProtection(bytes, at: position, tracks: tracks, read: read)
    for track in MP4Box.all(["moof", "traf"], in: bytes[...]) {
      Self.hide(MP4Box.all(in: bytes[track.body]), in: &bytes)
    }
    return fragment
  }

  /// Throws unless all that the encrypted samples need are keys.
  func check() throws(ReelError) {
    for track in tracks.values { try track.check() }
  }

  // MARK: - Private

  private mutating func takeSystemData(_ parent: FourCC, in bytes: inout [UInt8]) {
    for box in MP4Box.all([parent, "pssh"], in: bytes[...]) {
      let data = Array(bytes[box.start..<box.end])
      if systemData.count < Self.systemDataLimit, !systemData.contains(data) { systemData.append(data) }
      Self.free(box, in: &bytes)
    }
  }

  private mutating func takeTrack(
    _ track: MP4Box, in bytes: inout [UInt8], read: (Range<Int64>) throws -> [UInt8]
  ) throws {
    let outer = MP4Box.all(in: bytes[track.body])
    guard let header = outer.first(where: { $0.type == "tkhd" }) else { return }
    var fields = BoxFields(bytes, header.body)
    try fields.skip(try fields.versionAndFlags().version == 1 ? 16 : 8)
    let id = try fields.integer(4)
    var table = outer
    for type: FourCC in ["mdia", "minf", "stbl"] {
      guard let box = table.first(where: { $0.type == type }) else { return }
      table = MP4Box.all(in: bytes[box.body])
    }
    guard let descriptions = table.first(where: { $0.type == "stsd" }) else { return }
    var protection = TrackProtection()
    for entry in MP4Box.all(in: bytes[descriptions.body.dropFirst(8)]) {
      protection.add(Self.takeEntry(entry, in: &bytes))
    }
    guard protection.isProtected else { return }
    protection.read(table, outer: outer, in: bytes, read: read)
    Self.hide(table + outer, in: &bytes)
    tracks[id] = protection
  }

  /// Returns the encryption of a sample entry; nil for one in the clear. The entry gets the type of its
  /// original format.
  private static func takeEntry(_ entry: MP4Box, in bytes: inout [UInt8]) -> TrackProtection.Entry? {
    guard let header = fieldsByteCount(of: entry, in: bytes), entry.body.count >= header else { return nil }
    let protections = MP4Box.all(in: bytes[entry.body.dropFirst(header)]).filter { $0.type == "sinf" }
    for protection in protections {
      let inner = MP4Box.all(in: bytes[protection.body])
      guard let format = inner.first(where: { $0.type == "frma" }), format.body.count >= 4 else {
        continue
      }
      bytes.replaceSubrange(entry.start + 4..<entry.start + 8, with: bytes[format.body.prefix(4)])
      for protection in protections { free(protection, in: &bytes) }
      do throws(ReelError) {
        return .success(try ProtectedEntry(inner, in: bytes))
      } catch {
        return .failure(error)
      }
    }
    return nil
  }

  /// Returns the number of bytes between the header of a sample entry and its boxes; nil for one that is not
  /// encrypted.
  private static func fieldsByteCount(of entry: MP4Box, in bytes: [UInt8]) -> Int? {
    switch entry.type {
    case "encv": return 78
    case "enca":
      guard entry.body.count >= 10 else { return nil }
      // QuickTime's versions 1 and 2 have more fields.
      switch bytes[entry.body.lowerBound + 9] {
      case 1: return 44
      case 2: return 64
      default: return 28
      }
    default: return nil
    }
  }

  /// Hides boxes that describe encrypted samples.
  private static func hide(_ boxes: [MP4Box], in bytes: inout [UInt8]) {
    for box in boxes where box.describesEncryption(in: bytes) { free(box, in: &bytes) }
  }

  /// Turns a box into a `free` box of the same size, which demuxers skip.
  private static func free(_ box: MP4Box, in bytes: inout [UInt8]) {
    bytes.replaceSubrange(box.start + 4..<box.start + 8, with: "free".utf8)
  }
}

/// The positions of the samples of one movie fragment, and their encryption (ISO/IEC 14496-12 §8.8).
struct FragmentProtection {
  struct Sample {
    /// Its position in the file.
    let position: Int64
    let byteCount: Int
    /// Its number in the track fragment.
    let number: Int
  }

  /// A track fragment whose samples may be encrypted.
  struct Track {
    let id: Int
    /// In order of position.
    var samples: [Sample]
    /// The error if the encryption metadata can't be read.
    var table: Result<SampleTable, ReelError>
    /// True if all of its runs could be read.
    var isComplete: Bool
  }

  /// The position of its `moof` in the file.
  let position: Int64
  private(set) var tracks: [Track] = []

  /// A fragment with more samples is treated as damaged.
  private static let sampleLimit = 1 << 20

  /// - Parameters:
  ///   - bytes: The whole `moof` box.
  ///   - position: Its position in the file.
  ///   - read: Reads bytes of the file.
  init(
    _ bytes: [UInt8], at position: Int64, tracks known: [Int: TrackProtection],
    read: (Range<Int64>) throws -> [UInt8]
  ) {
    self.position = position
    // The data of a track without its own offset follows the data of the previous track, as in libavformat's mov.
    var implicit = position
    var room = Self.sampleLimit
    for fragment in TrackFragment.all(in: bytes[...]) {
      let base =
        switch fragment.base {
        case .file(let position): Int64(clamping: position)
        case .fragment: position
        case .previous: implicit
        }
      let track = known[fragment.track]
      let size = fragment.defaults.size ?? track?.defaults?.size ?? 0
      var samples: [Sample] = []
      var counts: [Int] = []
      for run in fragment.runs {
        guard run.count <= room, run.count <= run.readableCount else { break }
        room -= run.count
        counts.append(run.count)
        implicit = Self.place(run, from: base, defaultSize: size, into: &samples)
      }
      guard let track, track.isProtected else { continue }
      let table = Self.table(fragment, in: bytes, base: base, track, sampleCounts: counts, read: read)
      let isComplete = counts.count == fragment.boxes.count { $0.type == "trun" }
      samples.sort { ($0.position, $0.number) < ($1.position, $1.number) }
      tracks.append(Track(id: fragment.track, samples: samples, table: table, isComplete: isComplete))
    }
  }

  /// Returns the number of the sample of a track at a file position, and the encryption of its run; nil if it is not in
  /// this fragment.
  func find(track id: Int, at position: Int64) -> (table: Result<SampleTable, ReelError>, sample: Int)? {
    for track in tracks where track.id == id {
      let next = track.samples.indices.bisect { track.samples[$0].position > position }
      guard next > 0, track.samples[next - 1].position == position else { continue }
      return (track.table, track.samples[next - 1].number)
    }
    return nil
  }

  // MARK: - Private

  /// Records the positions of a run's samples. Returns the end of the last one.
  private static func place(
    _ run: SampleRun, from base: Int64, defaultSize: Int, into samples: inout [Sample]
  ) -> Int64 {
    var position = base &+ (run.dataOffset?.value ?? 0)
    for index in 0..<run.count {
      let size = run[index].size ?? defaultSize
      samples.append(Sample(position: position, byteCount: size, number: samples.count))
      position &+= Int64(size)
    }
    return position
  }

  private static func table(
    _ fragment: TrackFragment, in bytes: [UInt8], base: Int64, _ track: TrackProtection, sampleCounts: [Int],
    read: (Range<Int64>) throws -> [UInt8]
  ) -> Result<SampleTable, ReelError> {
    do {
      let own = try SampleGroups.descriptions(fragment.boxes, in: bytes)
      let groups = try SampleGroups(fragment.boxes, in: bytes, own: own, outer: track.descriptions)
      let description = fragment.defaults.description ?? track.defaults?.description ?? 1
      return .success(
        try SampleTable(
          fragment.boxes, in: bytes, entry: try track.entry(description), groups: groups, base: base,
          sampleCounts: sampleCounts, read: read))
    } catch {
      return .failure(ReelError(protection: error))
    }
  }
}

extension ReelError {
  /// The error for encryption metadata that can't be read.
  fileprivate init(protection error: any Error) {
    self =
      error as? ReelError ?? ReelError(.badMedia, "the encryption metadata can't be read: \(error)")
  }
}
