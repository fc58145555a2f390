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
  private let name: String
  private let descriptor: Int32
  private var bytes: [UInt8] = []
  private var start = 0
  private var isAtEnd = false

  /// - Parameter path: `-` for standard input. Throws `ReelError.noSuchFile`.
  init(path: String) throws(ReelError) {
    name = path == "-" ? "standard input" : path
    descriptor = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(errno) }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// The next line without its newline; nil at the end. Throws `ReelError.noSuchFile`.
  func next() throws(ReelError) -> [UInt8]? {
    var searched = start
    while true {
      if let end = bytes[searched...].firstIndex(of: 0x0a) {
        defer { start = end + 1 }
        return Array(bytes[start..<end])
      }
      searched = bytes.count
      if isAtEnd {
        guard start < bytes.count else { return nil }
        defer { start = bytes.count }
        return Array(bytes[start...])
      }
      searched -= start
      bytes.removeFirst(start)
      start = 0
      try fill()
    }
  }

  // MARK: - Private

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
