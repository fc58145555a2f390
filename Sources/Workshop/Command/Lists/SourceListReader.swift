import Foundation
import ReelCore
import ReelPlayback
import ReelPool

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Reads a list from a file, from standard input, or from the arguments.
///
/// Confined to one thread at a time: reading may block.
final class SourceListReader {
  /// The name in messages.
  let name: String
  /// Whether entries are relative to the list; those of the arguments are relative to the working folder.
  let location: MediaSource

  private let descriptor: Int32
  private var parser = SourceListParser()
  private var arguments: ArraySlice<String>
  private var isAtEnd = false

  init(arguments: [String]) {
    self.arguments = arguments[...]
    name = "arguments"
    location = .standardInput
    descriptor = -1
  }

  /// - Parameter path: `-` for standard input. Throws `ReelError.noSuchFile`.
  init(path: String) throws(ReelError) {
    arguments = []
    if path == "-" {
      name = "standard input"
      location = .standardInput
      descriptor = dup(STDIN_FILENO)
    } else {
      name = path
      location = .url(URL(fileURLWithPath: path))
      descriptor = open(path, O_RDONLY | O_CLOEXEC)
    }
    guard descriptor >= 0 else { throw failure(errno) }
    var status = stat()
    if fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
      throw ReelError(.noSuchFile, "is a folder", at: name)
    }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// How many sources the list has, from the current position; nil for a pipe.
  func count() throws(ReelError) -> Int? {
    guard descriptor >= 0 else { return arguments.count }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    var counter = SourceListCounter()
    var offset = lseek(descriptor, 0, SEEK_CUR)
    while true {
      let piece = try piece { pread(descriptor, $0, $1, offset) }
      if piece.isEmpty { return counter.count }
      counter.add(piece[...])
      offset += off_t(piece.count)
    }
  }

  /// Some more entries, maybe none; nil at the end. Throws `ReelError` with the list as its location.
  func next() throws(ReelError) -> [SourceListParser.Entry]? {
    guard descriptor >= 0 else {
      guard !arguments.isEmpty else { return nil }
      defer { arguments = arguments.dropFirst(256) }
      return arguments.prefix(256).map { .init(line: 0, content: .source($0, fields: [])) }
    }
    guard !isAtEnd else { return nil }
    let piece = try piece { read(descriptor, $0, $1) }
    var entries: [SourceListParser.Entry] = []
    do throws(ReelError) {
      if piece.isEmpty {
        isAtEnd = true
        try parser.finish(&entries)
      } else {
        try parser.add(piece[...], to: &entries)
      }
    } catch {
      throw error.located(at: name)
    }
    return entries
  }

  // MARK: - Private

  private func piece(
    _ read: (UnsafeMutableRawPointer, Int) -> Int
  ) throws(ReelError) -> [UInt8] {
    while true {
      var code: Int32 = 0
      let bytes = [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
        guard let base = buffer.baseAddress else { return }
        let result = read(base, buffer.count)
        if result < 0 { code = errno }
        count = max(0, result)
      }
      if code == EINTR { continue }
      guard code == 0 else { throw failure(code) }
      return bytes
    }
  }

  private func failure(_ code: Int32) -> ReelError {
    ReelError(.noSuchFile, "can't be read: \(Console.errorText(code))", at: name)
  }
}
