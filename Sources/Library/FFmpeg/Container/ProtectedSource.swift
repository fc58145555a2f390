internal import ReelCore

/// The bytes of an MP4 file with the boxes that describe encryption blanked out (`ProtectionTables`). Every byte
/// keeps its position.
///
/// `moov` and `moof` are read whole before any of their bytes is returned. A read never returns bytes of two
/// top-level boxes, so the bytes that a demuxer has read ahead after a sample are media.
///
/// Other top-level boxes than those that a demuxer knows become `free` boxes (ISO/IEC 14496-12 §4.2: boxes of an
/// unknown type are skipped). If the source is read forward only, so do bytes between fragments that are not a box, up to
/// the next `moof`: a demuxer would skip all later fragments. After some thousand samples the bytes end before a
/// fragment, and another demuxer has to continue (`proceed`), because a demuxer keeps an index of all samples.
final class ProtectedSource: ByteSource {
  let byteCount: Int64?
  let isSeekable: Bool
  private(set) var tables = ProtectionTables()
  /// Returns a description of the bytes that are not a box and were skipped since the last call; nil if there
  /// were none.
  func takeDamage() -> String? { damage.take() }

  private let base: any ByteSource
  private let renewalSampleCount: Int
  private var state = Phase.header
  /// The position of the next byte of `base`.
  private var position: Int64 = 0
  /// The part of a box, or of a box header, that has been read.
  private var held: [UInt8] = []
  private var heldCount = 0
  /// Bytes to return before anything else.
  private var ready: ArraySlice<UInt8> = []
  /// The number of bytes to leave out of the next box after a seek into its middle.
  private var skipped = 0
  /// True after a seek: there may be no box at the next position.
  private var isUncertain = false
  /// The boxes read so far of a seekable file, in order of position.
  private var known: [Passed] = []
  private var hasFragment = false
  private var damage: String?
  /// The header of the file, for the next demuxer. Empty if none can continue.
  private var fileType: [UInt8] = []
  private var movie: [UInt8]?
  private(set) var history: FragmentHistory
  /// True if fragments may have a time in an index of segments.
  private var hasSegmentIndex = false
  /// The bytes of `base` after `position`, read in search of a fragment.
  private var readAhead: ArraySlice<UInt8> = []

  private struct Passed {
    let range: Range<Int64>
    let isIndex: Bool
  }

  private enum Phase {
    case header
    /// Reads a whole box of this many bytes.
    case index(Int)
    /// Passes this many bytes through unchanged; nil for all.
    case passing(Int64?)
    /// Returns this many zeros.
    case blank(Int64)
    /// Ends before the held fragment, until another demuxer begins.
    case renewal(MovieFragment)
    case end
  }

  /// A larger header is not kept for another demuxer.
  private static let keptHeaderLimit = 256 << 10

  /// A larger `moov` or `moof` is passed through unchanged.
  private static let indexLimit = 128 << 20
  private static let chunkByteCount = 64 << 10
  /// A fragment after more damaged bytes than this is not found.
  private static let searchLimit: Int64 = 256 << 20
  /// The size of the `moof` box of one track.
  private static let leastFragmentByteCount: Int64 = 64
  /// The types of top-level boxes.
  private static let topTypes: Set<FourCC> = [
    "ftyp", "styp", "moov", "moof", "mdat", "sidx", "ssix", "free", "skip", "wide", "emsg", "prft", "mfra",
    "meta",
    "uuid", "udta", "pnot", "pdin",
  ]

  /// - Parameters:
  ///   - isSeekable: False if the source is read forward only.
  ///   - renewalSampleCount: The number of samples after which another demuxer continues.
  ///   - history: What was read before of a stream that goes on within a fragment; nil at its beginning.
  init(
    _ base: any ByteSource, isSeekable: Bool, renewalSampleCount: Int = .max, history: FragmentHistory? = nil
  ) {
    self.base = base
    self.history = history ?? FragmentHistory()
    if history != nil { self.history.begin(isWithinFragment: true) }
    self.renewalSampleCount = renewalSampleCount
    byteCount = base.byteCount
    self.isSeekable = isSeekable && base.isSeekable
  }

  /// True if the bytes have ended before a fragment, at which another demuxer can continue.
  var isAtRenewal: Bool { if case .renewal = state { true } else { false } }

  /// Continues for another demuxer, with the header of the file. Returns the position at which that demuxer has to begin
  /// for all later bytes to keep theirs.
  func proceed() -> Int64 {
    guard case .renewal(let fragment) = state, let movie else { return position }
    history.begin(isWithinFragment: false)
    history.stateTimes(of: fragment, in: &held)
    history.record(fragment)
    let header = fileType + movie
    let start = position - Int64(held.count + header.count)
    held = header + held
    heldCount = held.count
    giveHeld()
    state = .header
    return start
  }

  /// Gives a packet the times and flags that it would have if there had been one demuxer.
  func complete(_ packet: Packet, track: Int) { history.complete(packet, track: track) }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    while true {
      if !ready.isEmpty {
        let given = ready.prefix(buffer.count)
        buffer.copyBytes(from: given)
        ready = ready.dropFirst(given.count)
        if ready.isEmpty { ready = [] }
        return given.count
      }
      switch state {
      case .passing(0):
        state = .header
      case .passing(let rest):
        let wanted = rest.map { Int(min($0, Int64(buffer.count))) } ?? buffer.count
        let count = try readBase(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]))
        state = .passing(rest.map { $0 - Int64(count) })
        return count
      case .end, .renewal: return 0
      case .blank(0):
        state = .header
      case .blank(let rest):
        let zeros = UnsafeMutableRawBufferPointer(
          rebasing: buffer[..<Int(min(rest, Int64(buffer.count)))])
        zeros.initializeMemory(as: UInt8.self, repeating: 0)
        state = .blank(rest - Int64(zeros.count))
        return zeros.count
      case .header:
        guard try collect(8), try collect(MP4BoxHeader.headerByteCount(in: held[...])) else {
          return try pass() ? 0 : read(into: buffer)
        }
        try begin()
      case .index(let count):
        guard try collect(count) else { return try pass() ? 0 : read(into: buffer) }
        try takeIndex()
      }
    }
  }

  func seek(to offset: Int64) throws {
    (held, heldCount, ready, skipped, readAhead) = ([], 0, [], 0, [])
    isUncertain = false
    var target = offset
    if let box = known.last(where: { $0.range.lowerBound <= offset && offset < $0.range.upperBound }) {
      if box.range.lowerBound == offset {
        state = .header
      } else if box.isIndex {
        skipped = Int(offset - box.range.lowerBound)
        target = box.range.lowerBound
        state = .header
      } else {
        state = .passing(box.range.upperBound - offset)
      }
    } else {
      isUncertain = offset > 0 && !known.contains { $0.range.upperBound == offset }
      state = .header
    }
    try base.seek(to: target)
    position = target
  }

  // MARK: - Private

  /// Reads until `count` bytes are held. Returns false at an earlier end.
  private func collect(_ count: Int) throws -> Bool {
    while heldCount < count {
      if heldCount == held.count {
        // Grow with the data, because a box may claim any size.
        held.append(contentsOf: repeatElement(0, count: min(count - heldCount, Self.chunkByteCount)))
      }
      let read = try held.withUnsafeMutableBytes {
        try readBase(into: UnsafeMutableRawBufferPointer(rebasing: $0[heldCount...]))
      }
      if read == 0 { return false }
      heldCount += read
    }
    return true
  }

  private func readBase(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    let count: Int
    if readAhead.isEmpty {
      count = try base.read(into: buffer)
    } else {
      let given = readAhead.prefix(buffer.count)
      buffer.copyBytes(from: given)
      readAhead = readAhead.dropFirst(given.count)
      count = given.count
    }
    position += Int64(count)
    return count
  }

  /// Returns the held bytes, except those to be left out after a seek.
  private func giveHeld() {
    ready = held.prefix(heldCount).dropFirst(skipped)
    (held, heldCount, skipped) = ([], 0, 0)
  }

  /// Passes the held bytes and everything after them through unchanged; true if nothing is held.
  private func pass() -> Bool {
    state = .passing(nil)
    giveHeld()
    return ready.isEmpty
  }

  /// Handles a box whose header is held.
  private func begin() throws {
    let isUncertain = isUncertain
    self.isUncertain = false
    if !isSeekable, hasFragment, !isBox { return try skipToFragment() }
    guard let header = MP4BoxHeader(held[...]), !header.isMalformed,
      !isUncertain || Self.topTypes.contains(header.type)
    else {
      _ = pass()
      return
    }
    if !Self.topTypes.contains(header.type), header.isPlausible {
      held.replaceSubrange(4..<8, with: "free".utf8)
    }
    let start = position - Int64(held.count)
    let size = header.byteCount.map { Int64(clamping: $0) }
    if header.type == "moof" { hasFragment = true }
    if header.type == "sidx" { hasSegmentIndex = true }
    let isFileType =
      !isSeekable && movie == nil && header.type == "ftyp" && size.map { $0 <= Self.keptHeaderLimit } ?? false
    let isIndex = header.type == "moov" || header.type == "moof" || isFileType
    let end = size.flatMap { start.addingReportingOverflow($0).overflow ? nil : start + $0 } ?? .max
    let isNew =
      (known.last?.range.upperBound ?? 0) <= start || !known.contains { $0.range.lowerBound == start }
    if isSeekable, isNew {
      known.append(Passed(range: start..<end, isIndex: isIndex))
    }
    if isIndex, let size, size <= Self.indexLimit {
      state = .index(Int(size))
      return
    }
    state = .passing(size.map { $0 - Int64(held.count) })
    giveHeld()
  }

  /// True if a box that ends before the next fragment may begin with the held header.
  private var isBox: Bool {
    guard let header = MP4BoxHeader(held[...]), !header.isMalformed else { return false }
    return header.byteCount == nil
      ? header.type == "mdat" : Self.topTypes.contains(header.type) || header.isPlausible
  }

  /// Turns the held bytes, and all bytes up to the next fragment, into a `free` box. Ends the source if there
  /// is none.
  private func skipToFragment() throws {
    let start = position - Int64(heldCount)
    let header = MP4BoxHeader(held[...])
    let isOpenEnded = header.map { $0.byteCount == nil && $0.isPlausible } ?? false
    var window = held.prefix(heldCount)
    (held, heldCount, skipped) = ([], 0, 0)
    while position - start < Self.searchLimit {
      // A whole box has at least 8 bytes, and its type comes after its size.
      let first = max(0, Int(start + 8 - (position - Int64(window.count)))) + 4
      if let type = window.indices.dropFirst(first).first(where: { Self.isFragmentType(window[$0...]) }) {
        readAhead = window[(type - 4)...]
        position -= Int64(readAhead.count)
        let count = position - start
        damage = "\(count) bytes at byte \(start) are damaged"
        ready = (UInt32(truncatingIfNeeded: count).bigEndianBytes + Array("free".utf8))[...]
        state = .blank(count - 8)
        return
      }
      // The pattern may continue in the next piece.
      window = window.suffix(19)
      var piece = [UInt8](repeating: 0, count: Self.chunkByteCount)
      let count = try piece.withUnsafeMutableBytes { try readBase(into: $0) }
      if count == 0 { break }
      window = (window + piece.prefix(count))[...]
    }
    // A box without a size is the last one (ISO/IEC 14496-12 §4.2.2).
    if !isOpenEnded, position - start >= Self.leastFragmentByteCount {
      damage = "the bytes from byte \(start) on are damaged, and no fragment follows"
    }
    state = .end
  }

  /// Returns true if bytes are those of a `moof` after its size; it begins with `mfhd` (ISO/IEC 14496-12
  /// §8.8.4).
  private static func isFragmentType(_ bytes: ArraySlice<UInt8>) -> Bool {
    bytes.first == UInt8(ascii: "m") && bytes.starts(with: "moof".utf8)
      && bytes.dropFirst(8).starts(with: "mfhd".utf8)
  }

  /// Handles a `moov` or `moof` that is held whole.
  private func takeIndex() throws {
    let start = position - Int64(held.count)
    let index = held
    let read = { [base, isSeekable, position] (range: Range<Int64>) throws -> [UInt8] in
      guard range.lowerBound >= start, range.upperBound <= start + Int64(index.count) else {
        return try Self.bytes(range, of: base, isSeekable: isSeekable, returningTo: position)
      }
      return Array(index[Int(range.lowerBound - start)..<Int(range.upperBound - start)])
    }
    switch MP4BoxHeader.type(in: held[...]) {
    case "ftyp":
      fileType = held
    case "moov":
      try tables.takeMovie(&held, read: read)
      if MovieFragment.listsSamples(held) { OpenEdit.mend(&held) }
      // libavformat ignores a second one.
      if !isSeekable, movie == nil {
        history.recordMovie(held)
        movie =
          fileType.count + held.count <= Self.keptHeaderLimit && !MovieFragment.listsSamples(held) ? held : []
      }
    default:
      tables.takeFragment(&held, at: start, keepsAll: isSeekable, read: read)
      FirstSampleTime.mend(&held)
      if !isSeekable, movie?.isEmpty == false {
        let fragment = history.fragment(held)
        if history.entryCount >= renewalSampleCount, fragment.hasTimes || !hasSegmentIndex {
          state = .renewal(fragment)
          return
        }
        history.record(fragment)
      }
    }
    giveHeld()
    state = .header
  }

  /// Reads bytes elsewhere in the file.
  private static func bytes(
    _ range: Range<Int64>, of base: any ByteSource, isSeekable: Bool, returningTo position: Int64
  ) throws -> [UInt8] {
    guard isSeekable else {
      throw ReelError(
        .unsupported, found: .encrypted,
        "the encryption metadata is elsewhere in the file, which is not seekable")
    }
    try base.seek(to: range.lowerBound)
    defer { try? base.seek(to: position) }
    var bytes = [UInt8](repeating: 0, count: range.count)
    var count = 0
    while count < bytes.count {
      let read = try bytes.withUnsafeMutableBytes {
        try base.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[count...]))
      }
      guard read > 0 else {
        throw ReelError(.badMedia, "the encryption metadata lies beyond the end of the file (saio)")
      }
      count += read
    }
    return bytes
  }
}
