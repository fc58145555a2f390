/// The value of a `Range` field (RFC 9110 §14.2) with a single range.
enum RangeField {
  /// How a server treats the field.
  enum Outcome: Equatable {
    /// Without a range, with several, or with an invalid one, the whole resource is sent.
    case whole
    case part(Range<Int64>)
    /// The range is outside the resource: 416.
    case unsatisfiable
  }

  static func outcome(of text: String?, byteCount: Int64) -> Outcome {
    guard let text, text.hasPrefix("bytes="), !text.contains(",") else { return .whole }
    let ends = text.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard ends.count == 2 else { return .whole }
    switch (Int64(ends[0]), Int64(ends[1])) {
    case (nil, let count?) where ends[0].isEmpty && count >= 0:
      return count == 0 || byteCount == 0 ? .unsatisfiable : .part(max(0, byteCount - count)..<byteCount)
    case (let first?, nil) where ends[1].isEmpty && first >= 0:
      return first < byteCount ? .part(first..<byteCount) : .unsatisfiable
    case (let first?, let last?) where first >= 0 && last >= first:
      return first < byteCount ? .part(first..<min(last, byteCount - 1) + 1) : .unsatisfiable
    default: return .whole
    }
  }
}
