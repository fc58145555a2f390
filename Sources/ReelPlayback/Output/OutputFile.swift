internal import Foundation
package import ReelCore
internal import SystemPackage

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A file that is written under a temporary name beside its own and takes its name when it is whole; or what has no
/// other name to be written under: standard output, a named pipe, a device.
///
/// Confined to one thread at a time. Removed if it ends before `commit()`.
package final class OutputFile {
  package let path: String
  /// What errors name.
  private let location: String
  /// Nil for what is written to as it stands.
  private let partialPath: String?
  private var descriptor: Int32
  private let closesDescriptor: Bool

  /// Opens a named pipe or a device that stands at `path` as it is: a pipe waits for its reader.
  ///
  /// Throws `ReelError.cannotCreateOutput`.
  package init(path: String) throws(ReelError) {
    self.path = path
    location = path
    closesDescriptor = true
    if Self.isPipeOrDevice(path) {
      partialPath = nil
      descriptor = open(path, O_WRONLY | O_CLOEXEC)
      if descriptor < 0 { throw Self.creationFailure(errno, at: path) }
      return
    }
    let url = URL(fileURLWithPath: path)
    let partialPath =
      url.deletingLastPathComponent()
      .appendingPathComponent(".\(url.lastPathComponent).part-\(getpid())").path
    self.partialPath = partialPath
    PartialFiles.insert(partialPath)
    descriptor = open(partialPath, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    if descriptor < 0 {
      let code = errno
      PartialFiles.forget(partialPath)
      throw Self.creationFailure(code, at: path)
    }
  }

  private init() {
    path = "-"
    location = "standard output"
    partialPath = nil
    descriptor = STDOUT_FILENO
    closesDescriptor = false
  }

  package static func standardOutput() -> OutputFile { OutputFile() }

  deinit {
    guard closesDescriptor, descriptor >= 0 else { return }
    close(descriptor)
    guard let partialPath else { return }
    unlink(partialPath)
    PartialFiles.forget(partialPath)
  }

  /// Throws `ReelError.cannotWriteOutput`.
  package func write(_ bytes: UnsafeRawBufferPointer) throws(ReelError) {
    do {
      try FileDescriptor(rawValue: descriptor).writeAll(bytes)
    } catch {
      throw failure((error as? Errno)?.rawValue ?? EIO)
    }
  }

  /// Throws `ReelError.cannotWriteOutput`.
  package func write(_ bytes: [UInt8]) throws(ReelError) {
    let result = bytes.withUnsafeBytes { buffer in
      Result { () throws(ReelError) in try write(buffer) }
    }
    try result.get()
  }

  /// Gives the file its name. Nothing may be written after it.
  ///
  /// Throws `ReelError.cannotWriteOutput`, and `cannotCreateOutput` where the name can't be taken.
  package func commit() throws(ReelError) {
    guard closesDescriptor else { return }
    let closed = close(descriptor)
    let closeError = errno
    descriptor = -1
    defer { if let partialPath { PartialFiles.forget(partialPath) } }
    if closed != 0 {
      if let partialPath { unlink(partialPath) }
      throw failure(closeError)
    }
    if let partialPath, rename(partialPath, path) != 0 {
      let code = errno
      unlink(partialPath)
      throw Self.creationFailure(code, at: path)
    }
  }

  // MARK: - Private

  /// A file may be replaced by another; what others wait at may not.
  private static func isPipeOrDevice(_ path: String) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0 else { return false }
    return [S_IFIFO, S_IFCHR].contains(status.st_mode & S_IFMT)
  }

  private static func creationFailure(_ code: Int32, at path: String) -> ReelError {
    ReelError(.cannotCreateOutput, "can't be made: \(Errno(rawValue: code))", at: path)
  }

  private func failure(_ code: Int32) -> ReelError {
    ReelError(.cannotWriteOutput, "can't be written: \(Errno(rawValue: code))", at: location)
  }
}
