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

/// A file that is written under a temporary name beside its own, and gets its name when it is complete.
/// Standard output, named pipes and devices are written directly.
///
/// Confined to one thread at a time. If it is released before `commit(first:)`, the file is removed.
package final class OutputFile {
  package let path: String
  /// False if bytes that were written can't be changed later.
  package var canBePatched: Bool { partialPath != nil }

  /// The name in errors.
  private let location: String
  /// Nil if the target is written directly.
  private let partialPath: String?
  private var descriptor: Int32
  private let closesDescriptor: Bool
  private let existing: ExistingFiles

  /// Opens a file. A named pipe or a device at `path` is written directly: a pipe waits for its reader.
  ///
  /// - Parameter existing: What becomes of a file that has the name already. It is replaced by default.
  ///
  /// Throws `ReelError.cannotCreateOutput`.
  package init(path: String, existing: ExistingFiles = .replaced) throws(ReelError) {
    self.path = path
    self.existing = existing
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
    existing = .replaced
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
  /// - Parameter first: Bytes that replace the first ones, if the file can be patched.
  ///
  /// Throws `ReelError.cannotWriteOutput`, and `cannotCreateOutput` if the file can't get its name.
  package func commit(first: [UInt8] = []) throws(ReelError) {
    guard closesDescriptor, descriptor >= 0 else { return }
    defer { if let partialPath { PartialFiles.forget(partialPath) } }
    var code: Int32 = 0
    if canBePatched, !first.isEmpty {
      do { try FileDescriptor(rawValue: descriptor).writeAll(toAbsoluteOffset: 0, first) } catch {
        code = (error as? Errno)?.rawValue ?? EIO
      }
    }
    if close(descriptor) != 0, code == 0 { code = errno }
    descriptor = -1
    if code != 0 {
      if let partialPath { unlink(partialPath) }
      throw failure(code)
    }
    guard let partialPath else { return }
    do {
      try take(partialPath)
    } catch {
      unlink(partialPath)
      throw error
    }
  }

  /// True for a named pipe or a socket, whose writer may have to wait for its reader.
  package static func isPipe(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && [S_IFIFO, S_IFSOCK].contains(status.st_mode & S_IFMT)
  }

  /// Like `isPipe(_:)`, for standard output.
  package static var isStandardOutputPipe: Bool {
    var status = stat()
    return fstat(STDOUT_FILENO, &status) == 0 && [S_IFIFO, S_IFSOCK].contains(status.st_mode & S_IFMT)
  }

  /// The error for a file or folder that can't be made. A full or read-only disk concerns all outputs, so it is an error
  /// of writing.
  ///
  /// - Parameter code: The error number (`errno`).
  package static func creationFailure(
    _ code: Int32, at path: String, _ reason: String = "can't be created"
  ) -> ReelError {
    let kind: ReelError.Kind =
      [ENOSPC, EDQUOT, EROFS].contains(code) ? .cannotWriteOutput : .cannotCreateOutput
    return ReelError(kind, "\(reason): \(Errno(rawValue: code))", at: path)
  }

  // MARK: - Private

  private func take(_ partialPath: String) throws(ReelError) {
    try existing.check(path)
    if !existing.areReplaced {
      // rename(2) would replace a file that another process has made meanwhile.
      if link(partialPath, path) == 0 {
        unlink(partialPath)
        return
      }
      // Not every file system has links.
      if errno == EEXIST { throw ExistingFiles.refusal(at: path) }
    }
    if rename(partialPath, path) != 0 { throw Self.creationFailure(errno, at: path) }
  }

  /// A file may be replaced. A pipe or device that another process has open may not.
  private static func isPipeOrDevice(_ path: String) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0 else { return false }
    return [S_IFIFO, S_IFCHR].contains(status.st_mode & S_IFMT)
  }

  private func failure(_ code: Int32) -> ReelError {
    ReelError(.cannotWriteOutput, "can't be written: \(Errno(rawValue: code))", at: location)
  }
}

/// What becomes of existing files that have the names of a source's files.
package struct ExistingFiles: Sendable {
  /// True if they are replaced. Otherwise they are errors.
  let areReplaced: Bool
  /// The path of a local source, which is never replaced.
  private let source: String?

  package static let replaced = ExistingFiles(areReplaced: true)

  package init(areReplaced: Bool, source: String? = nil) {
    self.areReplaced = areReplaced
    self.source = source
  }

  /// Throws `ReelError.cannotCreateOutput` if no file may be written at `path`.
  package func check(_ path: String) throws(ReelError) {
    if let source, Self.areSame(path, source) {
      throw ReelError(
        .cannotCreateOutput, "the output would replace its own source", at: path,
        advice: "-o names another folder")
    }
    var status = stat()
    if !areReplaced, lstat(path, &status) == 0 { throw Self.refusal(at: path) }
  }

  fileprivate static func refusal(at path: String) -> ReelError {
    ReelError(
      .cannotCreateOutput, "the file exists", at: path,
      advice: "use --overwrite to replace it, or -o to name another folder")
  }

  /// True if both paths, after links, lead to one file.
  private static func areSame(_ path: String, _ other: String) -> Bool {
    var (status, otherStatus) = (stat(), stat())
    return stat(path, &status) == 0 && stat(other, &otherStatus) == 0 && status.st_dev == otherStatus.st_dev
      && status.st_ino == otherStatus.st_ino
  }
}
