import ReelCore

extension WarningLog {
  /// The value of EXT-X-VERSION (RFC 8216 §4.3.1.2); nil, with a warning, for what is no number.
  mutating func version(_ bytes: [UInt8], in range: Range<Int>, place: ReelError.Place) -> Int? {
    if let version = bytes.integer(in: range).flatMap({ Int(exactly: $0) }), version > 0 { return version }
    add("EXT-X-VERSION '\(bytes.text(in: range).excerpt)' is not a version", place: place)
    return nil
  }

  /// An EXT-X-START (RFC 8216 §4.3.5.2); nil, with a warning, where it does not say where.
  mutating func startPoint(_ attributes: AttributeList, place: ReelError.Place) -> StartPoint? {
    var reader = AttributeReader(attributes)
    if let start = StartPoint(&reader) { return start }
    let text = attributes["TIME-OFFSET"].map { "the TIME-OFFSET '\($0.excerpt)'" } ?? "no TIME-OFFSET"
    add("EXT-X-START has \(text)", place: place)
    return nil
  }
}
