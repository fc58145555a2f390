internal import ReelCore

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

  /// The default encryption of a track's samples; nil if it is not known.
  func entry(track: Int) -> ProtectedEntry? { tracks[track]?.firstEntry }

  /// How the sample of a track at a file position is encrypted; nil if it is in the clear.
  ///
  /// Throws `badMedia` if the file does not say.
  func protection(track: Int, at position: Int64) throws(ReelError) -> SampleProtection? {
    guard let known = tracks[track], known.isProtected else { return nil }
    for fragment in fragments.reversed() {
      switch fragment.find(track: track, at: position) {
      case .table(let table, let sample)?: return try table.protection(of: sample)
      case .fault(let error)?: throw error
      case nil: continue
      }
    }
    return try known.protection(at: position)
  }

  /// Records the encryption metadata of a `moov` box and removes it from `bytes`.
  ///
  /// - Parameters:
  ///   - bytes: The whole box.
  ///   - read: Reads bytes of the file.
  mutating func takeMovie(_ bytes: inout [UInt8], read: (Range<Int64>) throws -> [UInt8]) throws {
    guard let movie = MP4Box.all(in: bytes, 0..<bytes.count).first else { return }
    let boxes = MP4Box.all(in: bytes, movie.body)
    takeSystemData(boxes, in: &bytes)
    for track in boxes where track.type == "trak" {
      try takeTrack(track, in: &bytes, read: read)
    }
    for extends in boxes where extends.type == "mvex" {
      for box in MP4Box.all(in: bytes, extends.body) where box.type == "trex" {
        var fields = BoxFields(bytes, box.body)
        try fields.skip(4)
        let id = try fields.integer(4)
        tracks[id]?.defaultDescription = try fields.integer(4)
        try fields.skip(4)
        tracks[id]?.defaultSampleSize = try fields.integer(4)
      }
    }
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
    guard isProtected, let movie = MP4Box.all(in: bytes, 0..<bytes.count).first else { return }
    let boxes = MP4Box.all(in: bytes, movie.body)
    takeSystemData(boxes, in: &bytes)
    let fragment = FragmentProtection(boxes, in: bytes, at: position, tracks: tracks, read: read)
    for track in boxes where track.type == "traf" {
      Self.hide(MP4Box.all(in: bytes, track.body), in: &bytes)
    }
    fragments.removeAll { $0.position == position }
    fragments.append(fragment)
    if !keepsAll, fragments.count > Self.keptFragmentCount { fragments.removeFirst() }
  }

  // MARK: - Private

  private mutating func takeSystemData(_ boxes: [MP4Box], in bytes: inout [UInt8]) {
    for box in boxes where box.type == "pssh" {
      let data = Array(bytes[box.start..<box.end])
      if systemData.count < Self.systemDataLimit, !systemData.contains(data) { systemData.append(data) }
      Self.free(box, in: &bytes)
    }
  }

  private mutating func takeTrack(
    _ track: MP4Box, in bytes: inout [UInt8], read: (Range<Int64>) throws -> [UInt8]
  ) throws {
    let outer = MP4Box.all(in: bytes, track.body)
    guard let header = outer.first(where: { $0.type == "tkhd" }) else { return }
    var fields = BoxFields(bytes, header.body)
    try fields.skip(try fields.versionAndFlags().version == 1 ? 16 : 8)
    let id = try fields.integer(4)
    var table = outer
    for type: FourCC in ["mdia", "minf", "stbl"] {
      guard let box = table.first(where: { $0.type == type }) else { return }
      table = MP4Box.all(in: bytes, box.body)
    }
    guard let descriptions = table.first(where: { $0.type == "stsd" }) else { return }
    var protection = TrackProtection()
    for entry in MP4Box.all(in: bytes, descriptions.body.dropFirst(8)) {
      protection.add(Self.takeEntry(entry, in: &bytes))
    }
    guard protection.isProtected else { return }
    protection.read(table, outer: outer, in: bytes, read: read)
    Self.hide(table + outer, in: &bytes)
    tracks[id] = protection
  }

  /// The encryption of a sample entry; nil for one in the clear. The entry gets the type of its original format.
  private static func takeEntry(_ entry: MP4Box, in bytes: inout [UInt8]) -> TrackProtection.Entry? {
    guard let header = fieldsByteCount(of: entry, in: bytes), entry.body.count >= header else { return nil }
    let boxes = MP4Box.all(in: bytes, entry.body.dropFirst(header))
    for protection in boxes where protection.type == "sinf" {
      let inner = MP4Box.all(in: bytes, protection.body)
      guard let format = inner.first(where: { $0.type == "frma" }), format.body.count >= 4 else {
        continue
      }
      bytes.replaceSubrange(entry.start + 4..<entry.start + 8, with: bytes[format.body.prefix(4)])
      free(protection, in: &bytes)
      do throws(ReelError) {
        return .success(try ProtectedEntry(inner, in: bytes))
      } catch {
        return .failure(error)
      }
    }
    return nil
  }

  /// The number of bytes between the header of a sample entry and its boxes; nil for one that is not encrypted.
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
    for box in boxes
    where box.isSampleEncryption || box.type == "saiz" || box.type == "saio" {
      free(box, in: &bytes)
    }
  }

  /// Turns a box into a `free` box of the same size, which demuxers skip.
  private static func free(_ box: MP4Box, in bytes: inout [UInt8]) {
    bytes.replaceSubrange(box.start + 4..<box.start + 8, with: "free".utf8)
  }
}
