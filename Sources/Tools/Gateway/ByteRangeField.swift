import ReelCore

/// A `Range` field that names one part (RFC 9110 §14.1.2).
enum ByteRangeField: Hashable {
  /// From a byte on, to another or to the end.
  case from(Int64, through: Int64?)
  /// This many bytes at the end.
  case last(Int64)

  /// Nil for no part, for several, and for what is none: then the whole is sent (RFC 9110 §14.2).
  init?(_ text: String?) {
    guard let text, text.lowercased().hasPrefix("bytes="), !text.contains(",") else { return nil }
    let ends = text.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
      .map { $0.filter { $0 != " " && $0 != "\t" } }
    guard ends.count == 2, ends.allSatisfy({ $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }) else {
      return nil
    }
    switch (Int64(ends[0]), Int64(ends[1])) {
    case (nil, let count?) where ends[0].isEmpty: self = .last(count)
    case (let first?, nil) where ends[1].isEmpty: self = .from(first, through: nil)
    case (let first?, let last?) where last >= first: self = .from(first, through: last)
    default: return nil
    }
  }

  /// The bytes of a resource of `size`; nil if the range is outside of it (416).
  func bytes(of size: Int64) -> Range<Int64>? {
    switch self {
    case .last(let count): count > 0 && size > 0 ? max(0, size - count)..<size : nil
    case .from(let first, let last): first < size ? first..<(min(last ?? .max, size - 1) + 1) : nil
    }
  }
}
