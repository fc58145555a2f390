internal import ReelCore

/// Watches the boxes of a fragmented MP4 segment go by (ISO/IEC 14496-12 §4.2), so that one that is damaged does not
/// take those behind it with it: a demuxer that meets a wrong length skips all that comes.
///
/// What is no segment is refused before a byte of it is passed on; what ends within a box is filled up with zeros.
struct FragmentGuard {
  /// The header of the next box, as far as it has come; held back until it is whole.
  private var header: [UInt8] = []
  /// Bytes of the present box that are still to come; nil for a box without an end.
  private var rest: Int64? = 0

  /// Boxes that stand at the top of a segment.
  private static let types: Set<String> = [
    "styp", "ftyp", "sidx", "ssix", "moof", "mdat", "moov", "emsg", "prft", "free", "skip", "uuid", "mfra",
    "meta", "pdin",
  ]

  /// More than this is not filled up.
  private static let fillLimit: Int64 = 16 << 20

  /// The bytes to pass on. Throws `ReelError.badMedia` where they are no boxes of a segment.
  mutating func pass(_ chunk: [UInt8]) throws(ReelError) -> [UInt8] {
    var passed = header
    header = []
    passed.append(contentsOf: chunk)
    var offset = 0
    while offset < passed.count {
      guard let rest else { return passed }
      if rest > 0 {
        let step = min(rest, Int64(passed.count - offset))
        self.rest = rest - step
        offset += Int(step)
        continue
      }
      guard let box = try Self.box(passed[offset...]) else {
        header = Array(passed[offset...])
        return Array(passed[..<offset])
      }
      self.rest = box
    }
    return passed
  }

  /// What is missing at the end of the segment: zeros, none where it is whole.
  ///
  /// Throws `ReelError.badMedia` where too much is missing to be filled up.
  mutating func fill() throws(ReelError) -> [UInt8] {
    defer {
      header = []
      rest = 0
    }
    guard let rest, rest > 0 else { return [] }
    guard rest <= Self.fillLimit else {
      throw ReelError(.badMedia, "the segment is cut off, \(rest) bytes before its end")
    }
    return [UInt8](repeating: 0, count: Int(rest))
  }

  // MARK: - Private

  /// The length of the box whose header `bytes` begin with; nil where more of it is needed, and `.some(nil)` for one
  /// without an end.
  private static func box(_ bytes: ArraySlice<UInt8>) throws(ReelError) -> Int64?? {
    guard bytes.count >= 8 else { return nil }
    let number = { (range: Range<Int>) in
      bytes[(bytes.startIndex + range.lowerBound)..<(bytes.startIndex + range.upperBound)].reduce(UInt64(0)) {
        $0 << 8 | UInt64($1)
      }
    }
    let type = String(
      decoding: bytes[(bytes.startIndex + 4)..<(bytes.startIndex + 8)], as: UTF8.self)
    guard types.contains(type) else { throw ReelError(.badMedia, "the segment is not fragmented MP4") }
    switch number(0..<4) {
    case 0: return .some(nil)
    case 1:
      guard bytes.count >= 16 else { return nil }
      guard let length = Int64(exactly: number(8..<16)), length >= 16 else {
        throw ReelError(.badMedia, "a box of the segment has an impossible length")
      }
      return length
    case let length where length >= 8: return Int64(length)
    default: throw ReelError(.badMedia, "a box of the segment has an impossible length")
    }
  }
}
