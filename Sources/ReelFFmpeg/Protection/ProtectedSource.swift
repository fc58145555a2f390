internal import ReelCore

/// The bytes of an MP4 file, with the boxes that describe encryption taken out on the way (`ProtectionTables`); every
/// byte stays at its place.
///
/// `moov` and `moof` are read whole before a byte of them is given. A read never gives bytes of two boxes of the file: so
/// what a demuxer has read ahead behind a sample is media.
final class ProtectedSource: ByteSource {
  let byteCount: Int64?
  let isSeekable: Bool
  private(set) var tables = ProtectionTables()

  private let base: any ByteSource
  private var state = State.header
  /// Of the base's next byte.
  private var position: Int64 = 0
  /// A box, or the header of one, as far as it has come.
  private var held: [UInt8] = []
  private var heldCount = 0
  /// What is to be given before anything else.
  private var ready: ArraySlice<UInt8> = []
  /// Bytes of the next box that were given before a seek.
  private var skipped = 0
  /// The box at the next place may be none: it is behind a seek.
  private var isUncertain = false
  /// Boxes of the file that were passed, where it can be sought, by their beginnings.
  private var known: [Passed] = []

  private struct Passed {
    let range: Range<Int64>
    let isIndex: Bool
  }

  private enum State {
    case header
    /// The whole box, of so many bytes.
    case index(Int)
    /// So many bytes are passed as they come; nil for all.
    case passing(Int64?)
  }

  /// A larger `moov` is passed as it is.
  private static let indexLimit = 128 << 20
  private static let chunkByteCount = 64 << 10
  /// What stands at the top of a file.
  private static let topTypes: Set<UInt32> = [
    UInt32(box: "ftyp"), UInt32(box: "styp"), UInt32(box: "moov"), UInt32(box: "moof"), UInt32(box: "mdat"),
    UInt32(box: "sidx"), UInt32(box: "ssix"), UInt32(box: "free"), UInt32(box: "skip"), UInt32(box: "emsg"),
    UInt32(box: "prft"), UInt32(box: "mfra"), UInt32(box: "meta"), .uuid,
  ]

  /// - Parameter isSeekable: false where it is read forward only.
  init(_ base: any ByteSource, isSeekable: Bool) {
    self.base = base
    byteCount = base.byteCount
    self.isSeekable = isSeekable && base.isSeekable
  }

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
        let count = try base.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]))
        position += Int64(count)
        state = .passing(rest.map { $0 - Int64(count) })
        return count
      case .header:
        guard try collect(8), try held[3] != 1 || held.prefix(3) != [0, 0, 0] || collect(16) else {
          return try pass() ? 0 : read(into: buffer)
        }
        begin()
      case .index(let count):
        guard try collect(count) else { return try pass() ? 0 : read(into: buffer) }
        try takeIndex()
      }
    }
  }

  func seek(to offset: Int64) throws {
    (held, heldCount, ready, skipped) = ([], 0, [], 0)
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

  /// Reads until so many bytes are held; false where the end comes before.
  private func collect(_ count: Int) throws -> Bool {
    while heldCount < count {
      if heldCount == held.count {
        // As it comes: a box may claim any size.
        held.append(contentsOf: repeatElement(0, count: min(count - heldCount, Self.chunkByteCount)))
      }
      let read = try held.withUnsafeMutableBytes {
        try base.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[heldCount...]))
      }
      if read == 0 { return false }
      heldCount += read
      position += Int64(read)
    }
    return true
  }

  /// Gives what is held, without what was given before a seek.
  private func giveHeld() {
    ready = held.prefix(heldCount).dropFirst(skipped)
    (held, heldCount, skipped) = ([], 0, 0)
  }

  /// Gives what is held as it is, and all that follows; true where there is nothing.
  private func pass() -> Bool {
    state = .passing(nil)
    giveHeld()
    return ready.isEmpty
  }

  /// The header of a box is held.
  private func begin() {
    var fields = BoxFields(held, 0..<held.count)
    let number = { (count: Int) in (try? fields.number(count)) ?? 0 }
    let (short, type) = (number(4), UInt32(truncatingIfNeeded: number(4)))
    let size: Int64? = short == 0 ? nil : Int64(clamping: short == 1 ? number(8) : short)
    let isUncertain = isUncertain
    self.isUncertain = false
    guard size ?? .max >= Int64(held.count), !isUncertain || Self.topTypes.contains(type) else {
      _ = pass()
      return
    }
    let start = position - Int64(held.count)
    let isIndex = type == UInt32(box: "moov") || type == UInt32(box: "moof")
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

  /// A `moov` or `moof` is held, whole.
  private func takeIndex() throws {
    let start = position - Int64(held.count)
    let read = { [base, isSeekable, position] (range: Range<Int64>) throws -> [UInt8] in
      try Self.bytes(range, of: base, isSeekable: isSeekable, returningTo: position)
    }
    if held[4..<8].elementsEqual("moov".utf8) {
      let index = held
      let own = { (range: Range<Int64>) throws -> [UInt8] in
        guard range.lowerBound >= start, range.upperBound <= start + Int64(index.count) else {
          return try read(range)
        }
        return Array(index[Int(range.lowerBound - start)..<Int(range.upperBound - start)])
      }
      try tables.takeMovie(&held, read: own)
    } else {
      tables.takeFragment(&held, at: start, keepsAll: isSeekable, read: read)
    }
    giveHeld()
    state = .header
  }

  /// Bytes elsewhere in the file.
  private static func bytes(
    _ range: Range<Int64>, of base: any ByteSource, isSeekable: Bool, returningTo position: Int64
  ) throws -> [UInt8] {
    guard isSeekable else {
      throw ReelError(
        .unsupported, "what describes encrypted samples stands elsewhere in the file, which can't be sought")
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
        throw ReelError(.badMedia, "what describes encrypted samples is beyond the file (saio)")
      }
      count += read
    }
    return bytes
  }
}
