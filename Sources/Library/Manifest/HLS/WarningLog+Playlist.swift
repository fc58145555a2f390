import ReelCore

extension WarningLog {
  /// Adds a warning if the value of EXT-X-VERSION (RFC 8216 §4.3.1.2) is not a number above 0.
  mutating func checkVersion(_ bytes: [UInt8], in range: Range<Int>, place: ReelError.Place) {
    if let version = bytes.integer(in: range), version > 0 { return }
    add("EXT-X-VERSION '\(bytes.text(in: range).excerpt)' is not a version", place: place)
  }

  /// TIME-OFFSET of EXT-X-START (RFC 8216 §4.3.5.2): from the beginning or, if negative, from the end. Nil,
  /// with a warning, if it is missing or invalid.
  mutating func startOffset(_ attributes: AttributeList, place: ReelError.Place) -> MediaTime? {
    if let offset = attributes["TIME-OFFSET"].flatMap(AttributeList.seconds) { return offset }
    let text = attributes["TIME-OFFSET"].map { "the TIME-OFFSET '\($0.excerpt)'" } ?? "no TIME-OFFSET"
    add("EXT-X-START has \(text)", place: place)
    return nil
  }
}
