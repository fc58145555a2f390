internal import DequeModule

/// The bytes read most recently from a transfer, for a reader that goes back a little.
struct RecentBytes {
  /// The minimum number of bytes that are kept, once that many have arrived.
  var capacity: Int { didSet { trim() } }
  private(set) var count = 0
  private var chunks: Deque<[UInt8]> = []

  init(capacity: Int) { self.capacity = capacity }

  mutating func append(_ bytes: UnsafeMutableRawBufferPointer.SubSequence) {
    guard capacity > 0, !bytes.isEmpty else { return }
    chunks.append(Array(bytes))
    count += bytes.count
    trim()
  }

  /// Copies bytes that begin `distance` bytes before the end, and returns their number. Later calls may
  /// return them again.
  func read(_ distance: Int, beforeEndInto buffer: UnsafeMutableRawBufferPointer) -> Int {
    var start = count - distance
    for chunk in chunks {
      guard start >= chunk.count else {
        let copied = min(buffer.count, chunk.count - start)
        chunk.withUnsafeBytes {
          buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<(start + copied)]))
        }
        return copied
      }
      start -= chunk.count
    }
    return 0
  }

  private mutating func trim() {
    while let first = chunks.first, count - first.count >= capacity {
      count -= first.count
      chunks.removeFirst()
    }
  }
}
