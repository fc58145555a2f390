internal import ReelCore

/// The positions of the samples of one movie fragment, and how they are encrypted (ISO/IEC 14496-12 §8.8).
struct FragmentProtection {
  /// The result of looking up a sample.
  enum Found {
    case table(SampleTable, sample: Int)
    /// The encryption metadata can't be read.
    case fault(ReelError)
  }

  /// The position of its `moof` in the file.
  let position: Int64

  private struct Track {
    let id: Int
    /// Sample numbers by file position.
    var samples: [Int64: Int] = [:]
    var table: Result<SampleTable, ReelError>
  }

  private var tracks: [Track] = []

  /// A fragment with more samples is treated as damaged.
  private static let sampleLimit = 1 << 20

  /// - Parameters:
  ///   - boxes: The boxes of the `moof`.
  ///   - position: The position of the `moof` in the file.
  ///   - read: Reads bytes of the file.
  init(
    _ boxes: [MP4Box], in bytes: [UInt8], at position: Int64, tracks known: [Int: TrackProtection],
    read: (Range<Int64>) throws -> [UInt8]
  ) {
    self.position = position
    // The data of a track without its own offset follows the data of the previous track, as in libavformat's mov.
    var implicit = position
    for box in boxes where box.type == "traf" {
      let inner = MP4Box.all(in: bytes, box.body)
      guard let header = try? TrackHeader(inner, in: bytes, at: position, implicit: implicit) else {
        continue
      }
      let track = known[header.id]
      var samples: [Int64: Int] = [:]
      var counts: [Int] = []
      for run in inner where run.type == "trun" {
        let size = header.sampleSize ?? track?.defaultSampleSize ?? 0
        guard
          let (count, end) = try? Self.place(
            run, in: bytes, from: header.base, defaultSize: size, into: &samples)
        else { break }
        counts.append(count)
        implicit = end
      }
      guard let track, track.isProtected else { continue }
      tracks.append(
        Track(
          id: header.id, samples: samples,
          table: Self.table(
            inner, in: bytes, header, track, sampleCounts: counts,
            moof: position..<position + Int64(bytes.count),
            read: read)))
    }
  }

  /// The sample of a track at a file position; nil if it is not in this fragment.
  func find(track id: Int, at position: Int64) -> Found? {
    for track in tracks where track.id == id {
      guard let sample = track.samples[position] else { continue }
      switch track.table {
      case .success(let table): return .table(table, sample: sample)
      case .failure(let error): return .fault(error)
      }
    }
    return nil
  }

  // MARK: - Private

  private struct TrackHeader {
    let id: Int
    let base: Int64
    var description: Int?
    var sampleSize: Int?

    init(_ boxes: [MP4Box], in bytes: [UInt8], at position: Int64, implicit: Int64) throws(ReelError) {
      guard let box = boxes.first(where: { $0.type == "tfhd" }) else {
        throw ReelError(.badMedia, "a track fragment has no header")
      }
      var fields = BoxFields(bytes, box.body)
      let (_, flags) = try fields.versionAndFlags()
      id = try fields.integer(4)
      if flags & 0x1 != 0 {
        base = Int64(clamping: try fields.number(8))
      } else {
        base = flags & 0x20000 != 0 ? position : implicit
      }
      if flags & 0x2 != 0 { description = try fields.integer(4) }
      if flags & 0x8 != 0 { try fields.skip(4) }
      if flags & 0x10 != 0 { sampleSize = try fields.integer(4) }
    }
  }

  /// Records the positions of a run's samples. Returns their number and their end.
  private static func place(
    _ run: MP4Box, in bytes: [UInt8], from base: Int64, defaultSize: Int, into samples: inout [Int64: Int]
  ) throws(ReelError) -> (count: Int, end: Int64) {
    var fields = BoxFields(bytes, run.body)
    let (_, flags) = try fields.versionAndFlags()
    let count = try fields.integer(4)
    guard count <= sampleLimit - samples.count else {
      throw ReelError(.badMedia, "a fragment of \(count) samples is too long")
    }
    var offset = base
    if flags & 0x1 != 0 { offset &+= Int64(Int32(truncatingIfNeeded: try fields.integer(4))) }
    if flags & 0x4 != 0 { try fields.skip(4) }
    let first = samples.count
    for index in 0..<count {
      if flags & 0x100 != 0 { try fields.skip(4) }
      let size = flags & 0x200 != 0 ? try fields.integer(4) : defaultSize
      if flags & 0x400 != 0 { try fields.skip(4) }
      if flags & 0x800 != 0 { try fields.skip(4) }
      guard size > 0 else { throw ReelError(.badMedia, "a sample has no bytes") }
      samples[offset] = first + index
      offset &+= Int64(size)
    }
    return (count, offset)
  }

  private static func table(
    _ boxes: [MP4Box], in bytes: [UInt8], _ header: TrackHeader, _ track: TrackProtection,
    sampleCounts: [Int],
    moof: Range<Int64>, read: (Range<Int64>) throws -> [UInt8]
  ) -> Result<SampleTable, ReelError> {
    do {
      let own = try SampleGroups.descriptions(boxes, in: bytes)
      let groups = try SampleGroups(boxes, in: bytes, own: own, outer: track.descriptions)
      let entry = try track.entry(header.description ?? track.defaultDescription)
      let hasOwn = boxes.contains(where: \.isSampleEncryption)
      let auxiliary =
        hasOwn || entry == nil
        ? nil
        : try AuxiliaryInformation(boxes, in: bytes, base: header.base, sampleCounts: sampleCounts) { range in
          guard range.lowerBound >= moof.lowerBound, range.upperBound <= moof.upperBound else {
            return try read(range)
          }
          return Array(
            bytes[Int(range.lowerBound - moof.lowerBound)..<Int(range.upperBound - moof.lowerBound)])
        }
      return .success(
        try SampleTable(boxes, in: bytes, entry: entry, groups: groups, auxiliary: auxiliary))
    } catch let error as ReelError {
      return .failure(error)
    } catch {
      return .failure(ReelError(.badMedia, "the encryption metadata can't be read: \(error)"))
    }
  }
}
