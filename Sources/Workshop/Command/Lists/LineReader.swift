import Foundation
import ReelCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Reads a file, or standard input, line by line.
///
/// Confined to one thread at a time.
final class LineReader {
  /// A line without its newline.
  enum Line: Equatable {
    case bytes([UInt8])
    /// A line with more bytes than the limit, which are not kept.
    case overlong
  }

  private let name: String
  private let limit: Int
  private let descriptor: Int32
  private var bytes: [UInt8] = []
  private var start = 0
  private var isAtEnd = false

  /// - Parameters:
  ///   - path: `-` for standard input.
  ///   - limit: The longest line in bytes.
  ///
  /// Throws `ReelError.noSuchFile`.
  init(path: String, limit: Int) throws(ReelError) {
    self.limit = limit
    name = path == "-" ? "standard input" : path
    descriptor = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(errno) }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// The next line; nil at the end. Throws `ReelError.noSuchFile`.
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
      try fill()
    }
  }

  // MARK: - Private

  private func line(_ bytes: ArraySlice<UInt8>, _ isOverlong: Bool) -> Line {
    isOverlong || bytes.count > limit ? .overlong : .bytes(Array(bytes))
  }

  private func fill() throws(ReelError) {
    while true {
      var code: Int32 = 0
      let piece = [UInt8](unsafeUninitializedCapacity: 1 << 18) { buffer, count in
        let result = read(descriptor, buffer.baseAddress, buffer.count)
        if result < 0 { code = errno }
        count = max(0, result)
      }
      if code == EINTR { continue }
      guard code == 0 else { throw failure(code) }
      isAtEnd = piece.isEmpty
      bytes.append(contentsOf: piece)
      return
    }
  }

  private func failure(_ code: Int32) -> ReelError {
    ReelError(.noSuchFile, "can't be read: \(Console.errorText(code))", at: name)
  }
}
