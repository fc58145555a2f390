internal import Foundation
internal import ReelCore
internal import SystemPackage

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A file that is written from its start on, whose first bytes are written again at the end. It has a temporary name
/// beside its own until then; a pipe or a device is written as it stands.
///
/// Confined to one thread at a time. Removed if it ends before `commit(first:)`.
final class WAVFile {
  /// False where what was written can't be changed any more.
  let canBePatched: Bool

  private let path: String
  /// Nil for what is written as it stands.
  private let partialPath: String?
  private var descriptor: FileDescriptor?

  /// Throws `ReelError.cannotCreateOutput`.
  init(path: String) throws(ReelError) {
    self.path = path
    if Self.isPipeOrDevice(path) {
      partialPath = nil
    } else {
      let url = URL(fileURLWithPath: path)
      partialPath =
        url.deletingLastPathComponent()
        .appendingPathComponent(".\(url.lastPathComponent).part-\(getpid())").path
    }
    canBePatched = partialPath != nil
    if let partialPath { PartialFiles.insert(partialPath) }
    do {
      descriptor = try FileDescriptor.open(
        FilePath(partialPath ?? path), .writeOnly,
        options: partialPath == nil ? [.closeOnExec] : [.create, .truncate, .closeOnExec],
        permissions: [.ownerReadWrite, .groupRead, .otherRead])
    } catch {
      if let partialPath { PartialFiles.forget(partialPath) }
      throw ReelError(.cannotCreateOutput, "can't be made: \(error)", at: path)
    }
  }

  deinit { discard() }

  /// Throws `ReelError.cannotWriteOutput`.
  func write(_ bytes: UnsafeRawBufferPointer) throws(ReelError) {
    do {
      try descriptor?.writeAll(bytes)
    } catch {
      throw failure(error)
    }
  }

  /// Throws `ReelError.cannotWriteOutput`.
  func write(_ bytes: [UInt8]) throws(ReelError) {
    do {
      try descriptor?.writeAll(bytes)
    } catch {
      throw failure(error)
    }
  }

  /// Writes the first bytes again, and gives the file its name.
  ///
  /// Throws `ReelError.cannotWriteOutput`, and `cannotCreateOutput` where the name can't be taken.
  func commit(first bytes: [UInt8]) throws(ReelError) {
    guard let descriptor else { return }
    defer { if let partialPath { PartialFiles.forget(partialPath) } }
    do {
      if canBePatched { try descriptor.writeAll(toAbsoluteOffset: 0, bytes) }
      self.descriptor = nil
      try descriptor.close()
    } catch {
      discard()
      if let partialPath { unlink(partialPath) }
      throw failure(error)
    }
    guard let partialPath, rename(partialPath, path) != 0 else { return }
    let code = Errno(rawValue: errno)
    unlink(partialPath)
    throw ReelError(.cannotCreateOutput, "can't be made: \(code)", at: path)
  }

  // MARK: - Private

  private func discard() {
    guard let descriptor else { return }
    self.descriptor = nil
    try? descriptor.close()
    guard let partialPath else { return }
    unlink(partialPath)
    PartialFiles.forget(partialPath)
  }

  /// A file may be replaced by another; what others wait at may not.
  private static func isPipeOrDevice(_ path: String) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0 else { return false }
    return [S_IFIFO, S_IFCHR].contains(status.st_mode & S_IFMT)
  }

  private func failure(_ error: any Error) -> ReelError {
    ReelError(.cannotWriteOutput, "can't be written: \(error)", at: path)
  }
}
