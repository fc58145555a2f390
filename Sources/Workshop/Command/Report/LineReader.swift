import ReelCore

/// Reads a file, or standard input, line by line.
///
/// Confined to one thread at a time.
final class LineReader {
  /// A line without its newline.
  enum Line: Equatable {
    case bytes([UInt8])
    /// A line with more bytes than the limit, which are dropped.
    case overlong
  }

  private let file: PieceReader
  private let limit: Int
  private var bytes: [UInt8] = []
  private var start = 0
  private var isAtEnd = false

  /// - Parameters:
  ///   - path: `-` for standard input.
  ///   - limit: The maximum length of a line in bytes.
  ///
  /// Throws `ReelError.noSuchFile`.
  init(path: String, limit: Int) throws(ReelError) {
    self.limit = limit
    file = try PieceReader(path: path)
  }

  /// Returns the next line; nil at the end. Throws `ReelError.noSuchFile`.
  func next() throws(ReelError) -> Line? {
    var searched = start
    var isOverlong = false
    while true {
      if let end = bytes[searched...].firstIndex(of: 0x0a) {
        defer { start = end + 1 }
        return line(bytes[start..<end], isOverlong)
      }
      if isAtEnd {
        guard start < bytes.count || isOverlong else { return nil }
        defer { start = bytes.count }
        return line(bytes[start...], isOverlong)
      }
      isOverlong = isOverlong || bytes.count - start > limit
      if isOverlong { start = bytes.count }
      searched = bytes.count - start
      bytes.removeFirst(start)
      start = 0
      let piece = try file.piece()
      isAtEnd = piece.isEmpty
      bytes += piece
    }
  }

  // MARK: - Private

  private func line(_ bytes: ArraySlice<UInt8>, _ isOverlong: Bool) -> Line {
    isOverlong || bytes.count > limit ? .overlong : .bytes(Array(bytes))
  }
}
