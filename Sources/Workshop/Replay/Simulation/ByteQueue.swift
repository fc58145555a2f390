internal import DequeModule

/// Bytes in the order in which they came, cut anew where they are taken.
struct ByteQueue: Sendable {
  private var chunks: Deque<ArraySlice<UInt8>> = []
  private(set) var count = 0

  mutating func append(_ bytes: [UInt8]) {
    guard !bytes.isEmpty else { return }
    chunks.append(bytes[...])
    count += bytes.count
  }

  /// The first bytes, `limit` at most.
  mutating func take(_ limit: Int) -> [UInt8] {
    var taken: [UInt8] = []
    taken.reserveCapacity(min(limit, count))
    while taken.count < limit, let first = chunks.popFirst() {
      let wanted = first.prefix(limit - taken.count)
      taken.append(contentsOf: wanted)
      let rest = first.dropFirst(wanted.count)
      if !rest.isEmpty { chunks.prepend(rest) }
    }
    count -= taken.count
    return taken
  }
}
