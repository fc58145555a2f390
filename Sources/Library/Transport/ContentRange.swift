import ReelCore

/// The value of a `Content-Range` field (RFC 9110 §14.4): `bytes 0-99/1000`, `bytes 0-99/*`, `bytes */1000`.
struct ContentRange: Equatable {
  /// The first and the last byte; nil in a 416 response.
  var bytes: ClosedRange<Int64>?
  /// The size of the whole resource, if the server states it.
  var resourceByteCount: Int64?

  /// Nil if the text is invalid.
  init?(parsing text: String) {
    let parts = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
    guard parts.count == 2, parts[0].lowercased() == "bytes" else { return nil }
    let halves = parts[1].split(separator: "/", omittingEmptySubsequences: false)
    guard halves.count == 2 else { return nil }
    if halves[1] != "*" {
      guard let size = Int64(halves[1]), size >= 0 else { return nil }
      resourceByteCount = size
    }
    if halves[0] != "*" {
      let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false).map { Int64($0) }
      guard ends.count == 2, let first = ends[0], let last = ends[1], first <= last, last < .max else {
        return nil
      }
      bytes = first...last
    }
  }
}
