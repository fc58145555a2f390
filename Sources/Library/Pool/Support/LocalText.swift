internal import Foundation
package import ReelCore

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Reads small local files completely.
package enum LocalText {
  /// Returns all bytes of a file.
  ///
  /// - Parameter isRegular: True to refuse pipes and devices, which may never end. Use it for a path that the
  ///   user did not write; arguments of a command may be pipes, such as `<(…)` of a shell.
  /// - Throws: `ReelError.noSuchFile` if it can't be read, and `badManifest` if it has more bytes than `limit`.
  package static func bytes(path: String, limit: Int, isRegular: Bool = false) throws(ReelError) -> [UInt8] {
    var isDirectory: ObjCBool = false
    guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory) else {
      throw ReelError(.noSuchFile, "no such file", at: path)
    }
    guard !isDirectory.boolValue else { throw ReelError(.noSuchFile, "is a folder", at: path) }
    // Without O_NONBLOCK, opening a pipe without a writer would block.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | (isRegular ? O_NONBLOCK : 0))
    guard descriptor >= 0 else { throw .unreadable(errno, at: path) }
    defer { close(descriptor) }
    if isRegular {
      var status = stat()
      guard fstat(descriptor, &status) == 0 else { throw .unreadable(errno, at: path) }
      guard status.st_mode & S_IFMT == S_IFREG else {
        throw ReelError(.noSuchFile, "not a regular file", at: path)
      }
    }
    var bytes: [UInt8] = []
    while true {
      let (piece, code) = piece(of: descriptor)
      if code == EINTR { continue }
      guard code == 0 else { throw .unreadable(code, at: path) }
      if piece.isEmpty { return bytes }
      bytes.append(contentsOf: piece)
      guard bytes.count <= limit else {
        throw ReelError(.badManifest, "larger than the limit of \(limit) bytes", at: path)
      }
    }
  }

  /// Returns the bytes of a text in UTF-8, without a byte order mark.
  ///
  /// Throws `ReelError.badManifest` if it is not text, or not UTF-8.
  package static func validated(_ bytes: [UInt8]) throws(ReelError) -> ArraySlice<UInt8> {
    if bytes.starts(with: [0xff, 0xfe]) || bytes.starts(with: [0xfe, 0xff]) {
      throw ReelError(.badManifest, "UTF-16", advice: "save it as UTF-8")
    }
    let text = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? bytes[3...] : bytes[...]
    if text.contains(0) { throw ReelError(.badManifest, "binary data, not text") }
    if String(validating: text, as: UTF8.self) == nil {
      throw ReelError(.badManifest, "not UTF-8", place: .line(lineOfBadByte(in: text)))
    }
    return text
  }

  // MARK: - Private

  /// Returns the first line that is not UTF-8. Line ends are ASCII, so each line can be checked separately.
  private static func lineOfBadByte(in bytes: ArraySlice<UInt8>) -> Int {
    for line in TextLines(bytes) where String(validating: line.bytes, as: UTF8.self) == nil {
      return line.number
    }
    return 1
  }

  /// Returns the next bytes (none at the end) and 0, or the error number.
  private static func piece(of descriptor: Int32) -> (bytes: [UInt8], code: Int32) {
    var code: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
      let result = read(descriptor, buffer.baseAddress, buffer.count)
      if result < 0 { code = errno }
      count = max(0, result)
    }
    return (bytes, code)
  }
}

/// The lines of a text, numbered from 1. Lines end with LF, CRLF or CR.
package struct TextLines: Sequence, IteratorProtocol {
  private var rest: ArraySlice<UInt8>
  private var number = 0

  package init(_ bytes: ArraySlice<UInt8>) {
    rest = bytes
  }

  /// Returns the next line, without white space at its ends.
  package mutating func next() -> (number: Int, bytes: ArraySlice<UInt8>)? {
    guard !rest.isEmpty else { return nil }
    number += 1
    let end = rest.firstIndex { $0 == 0x0a || $0 == 0x0d } ?? rest.endIndex
    var line = rest[..<end].drop(while: \.isSpace)
    while line.last?.isSpace == true { line.removeLast() }
    rest = rest[end...]
    if rest.starts(with: [0x0d, 0x0a]) { rest = rest.dropFirst(2) } else { rest = rest.dropFirst() }
    return (number, line)
  }
}
