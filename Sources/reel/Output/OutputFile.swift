import Foundation
import ReelCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A file that is written under a temporary name beside its own and takes its name when it is whole; or standard
/// output.
///
/// Confined to one thread at a time. Removed if it ends before `commit()`.
final class OutputFile {
  let path: String
  private let partialPath: String
  private var descriptor: Int32
  private let isStandardOutput: Bool

  /// Throws `ReelError.cannotCreateOutput`.
  init(path: String) throws(ReelError) {
    self.path = path
    isStandardOutput = false
    let url = URL(fileURLWithPath: path)
    partialPath =
      url.deletingLastPathComponent()
      .appendingPathComponent(".\(url.lastPathComponent).part-\(getpid())").path
    PartialFiles.insert(partialPath)
    descriptor = open(partialPath, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    if descriptor < 0 {
      let code = errno
      PartialFiles.forget(partialPath)
      throw ReelError(.cannotCreateOutput, "can't be made: \(Console.errorText(code))", at: path)
    }
  }

  private init() {
    path = "-"
    partialPath = ""
    descriptor = STDOUT_FILENO
    isStandardOutput = true
  }

  static func standardOutput() -> OutputFile { OutputFile() }

  deinit {
    guard !isStandardOutput, descriptor >= 0 else { return }
    close(descriptor)
    unlink(partialPath)
    PartialFiles.forget(partialPath)
  }

  /// Throws `ReelError.cannotWriteOutput`.
  func write(_ bytes: UnsafeRawBufferPointer) throws(ReelError) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = Foundation.write(descriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
      if count < 0 {
        if errno == EINTR { continue }
        throw failure(errno)
      }
      rest = rest.dropFirst(count)
    }
  }

  func write(_ bytes: [UInt8]) throws(ReelError) {
    let result = bytes.withUnsafeBytes { buffer in
      Result { () throws(ReelError) in try write(buffer) }
    }
    try result.get()
  }

  /// Gives the file its name.
  func commit() throws(ReelError) {
    guard !isStandardOutput else { return }
    let closed = close(descriptor)
    let closeError = errno
    descriptor = -1
    defer { PartialFiles.forget(partialPath) }
    if closed != 0 {
      unlink(partialPath)
      throw failure(closeError)
    }
    if rename(partialPath, path) != 0 {
      let code = errno
      unlink(partialPath)
      throw ReelError(.cannotCreateOutput, "can't be made: \(Console.errorText(code))", at: path)
    }
  }

  private func failure(_ code: Int32) -> ReelError {
    ReelError(
      .cannotWriteOutput, "can't be written: \(Console.errorText(code))",
      at: isStandardOutput ? "standard output" : path)
  }
}
