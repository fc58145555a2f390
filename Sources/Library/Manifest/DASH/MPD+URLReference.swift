package import ReelCore

extension MPD {
  /// A URL with a byte range (ISO/IEC 23009-1 §5.3.9.2.2, URLType).
  package struct URLReference: Sendable, Hashable {
    /// @sourceURL; nil stands for the BaseURL.
    package var sourceURL: String?
    /// @range.
    package var range: ByteRange?

    /// - Parameter element: The element name under which an unreadable range is recorded.
    init(
      _ reader: inout MPDReader, _ element: String, _ malformed: inout MalformedValues
    ) throws(ReelError) {
      sourceURL = reader.xml.string("sourceURL")
      range = malformed.value(of: element, &reader) { xml throws(ReelError) in try xml.byteRange("range") }
      try reader.xml.skip()
    }
  }
}

extension XMLReader {
  /// A byte range, `first-last` including both bytes, or `first-` (RFC 9110 §14.1.1). Throws `badManifest` for
  /// anything else.
  package mutating func byteRange(_ name: StaticString) throws(ReelError) -> ByteRange? {
    guard let text = string(name) else { return nil }
    let parts = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    if parts.count == 2, let first = String(parts[0]).integer, first >= 0 {
      if parts[1].isEmpty { return ByteRange(offset: first, length: nil) }
      if let last = String(parts[1]).integer, last >= first, last < .max {
        return ByteRange(offset: first, length: last - first + 1)
      }
    }
    throw malformed("@\(name) '\(text.excerpt)' is not a byte range of the form first-last")
  }
}
