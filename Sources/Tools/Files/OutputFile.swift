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
  /// False if written bytes can't be changed later.
  package var canBePatched: Bool { partialPath != nil }

  /// The file's name in errors.
  private let location: String
  /// Nil if the target is written directly.
  private let partialPath: String?
  private var descriptor: Int32
  private let closesDescriptor: Bool
  private let existing: ExistingFiles

  /// Opens a file. A named pipe or a device at `path` is written directly: a pipe waits for its reader.
  ///
  /// - Parameter existing: The treatment of a file that has the name already. It is replaced by default.
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

  /// Returns true for a named pipe or a socket, whose writer may have to wait for its reader.
  package static func isPipe(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && [S_IFIFO, S_IFSOCK].contains(status.st_mode & S_IFMT)
  }

  /// Like `isPipe(_:)`, for standard output.
  package static var isStandardOutputPipe: Bool {
    var status = stat()
    return fstat(STDOUT_FILENO, &status) == 0 && [S_IFIFO, S_IFSOCK].contains(status.st_mode & S_IFMT)
  }

  /// Returns the error for a file or folder that can't be created. A full or read-only disk affects all
  /// outputs, so it is an error of writing.
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
      // Not every file system supports links.
      if errno == EEXIST { throw ExistingFiles.refusal(at: path) }
    }
    if rename(partialPath, path) != 0 { throw Self.creationFailure(errno, at: path) }
  }

  /// Returns true if another process may have the path open. A file may be replaced, a pipe or device may
  /// not.
  private static func isPipeOrDevice(_ path: String) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0 else { return false }
    return [S_IFIFO, S_IFCHR].contains(status.st_mode & S_IFMT)
  }

  private func failure(_ code: Int32) -> ReelError {
    ReelError(.cannotWriteOutput, "can't be written: \(Errno(rawValue: code))", at: location)
  }
}

/// The treatment of existing files that have the names of a source's files.
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

  /// Returns true if both paths, after resolving links, refer to the same file.
  private static func areSame(_ path: String, _ other: String) -> Bool {
    var (status, otherStatus) = (stat(), stat())
    return stat(path, &status) == 0 && stat(other, &otherStatus) == 0 && status.st_dev == otherStatus.st_dev
      && status.st_ino == otherStatus.st_ino
  }
}

/// A regular file that one process uses exclusively (`flock`). It can be read anywhere, and written at its
/// end.
///
/// Confined to one thread at a time. Owns the descriptor, and closes it, which releases the lock.
package final class LockedFile {
  /// Nil for a file without a name.
  package let path: String?
  /// The size in bytes.
  package private(set) var byteCount: Int64
  private var descriptor: FileDescriptor

  /// Opens a file, or creates it.
  ///
  /// - Parameters:
  ///   - path: The path; nil for a temporary file without a name.
  ///   - inUse: The reason and the advice of the error if another process uses the file.
  /// - Throws: `ReelError.cannotCreateOutput` if that fails, or another process uses the file;
  ///   `cannotWriteOutput` if the disk is full.
  package init(path: String?, inUse: (reason: String, advice: String)) throws(ReelError) {
    self.path = path
    if let path {
      (descriptor, byteCount) = try Self.open(path, inUse: inUse)
    } else {
      (descriptor, byteCount) = (try Self.makeTemporary(), 0)
    }
  }

  deinit {
    // A process that another thread is starting may still share the descriptor, and with it the lock.
    _ = flock(descriptor.rawValue, LOCK_UN)
    try? descriptor.close()
  }

  /// Returns the bytes of a range, fewer at the end of the file. Throws `ReelError.cannotCreateOutput`.
  package func read(_ range: Range<Int64>) throws(ReelError) -> [UInt8] {
    var code: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
      while count < buffer.count {
        let address = buffer.baseAddress.map { $0 + count }
        let result = pread(
          descriptor.rawValue, address, buffer.count - count, off_t(range.lowerBound) + off_t(count))
        if result < 0, errno == EINTR { continue }
        if result < 0 { code = errno }
        guard result > 0 else { return }
        count += result
      }
    }
    if code != 0 { throw failure(.cannotCreateOutput, "can't be read", code) }
    return bytes
  }

  /// Calls `body` with each complete line, without its newline, and its range in the file, with the newline.
  ///
  /// - Parameters:
  ///   - start: The position of the first line.
  ///   - limit: The longest line in bytes.
  /// - Returns: The end of the last complete line; nil if a line is longer than the limit.
  /// - Throws: The errors of `body`, and `ReelError.cannotCreateOutput`.
  package func forEachLine(
    from start: Int64 = 0, limit: Int, _ body: (ArraySlice<UInt8>, Range<Int64>) throws(ReelError) -> Void
  ) throws(ReelError) -> Int64? {
    var pending: [UInt8] = []
    var (lineStart, offset) = (start, start)
    while true {
      let piece = try read(offset..<max(offset, min(offset + Self.pieceLength, byteCount)))
      if piece.isEmpty { return lineStart }
      offset += Int64(piece.count)
      var rest = piece[...]
      while let end = rest.firstIndex(of: 0x0a) {
        let line: ArraySlice<UInt8>
        if pending.isEmpty {
          line = rest[..<end]
        } else {
          line = (pending + rest[..<end])[...]
          pending.removeAll(keepingCapacity: true)
        }
        let lineEnd = lineStart + Int64(line.count) + 1
        try body(line, lineStart..<lineEnd)
        lineStart = lineEnd
        rest = rest[(end + 1)...]
      }
      pending += rest
      if pending.count > limit { return nil }
    }
  }

  /// Writes at the end. If that fails, the file is unchanged. Throws `ReelError.cannotWriteOutput`.
  package func append(_ bytes: [UInt8]) throws(ReelError) {
    do {
      try descriptor.writeAll(bytes)
    } catch {
      let code = (error as? Errno)?.rawValue ?? EIO
      _ = ftruncate(descriptor.rawValue, off_t(byteCount))
      throw failure(.cannotWriteOutput, "can't be written", code)
    }
    byteCount += Int64(bytes.count)
  }

  /// Throws `ReelError.cannotWriteOutput`.
  package func truncate(to byteCount: Int64) throws(ReelError) {
    guard ftruncate(descriptor.rawValue, off_t(byteCount)) == 0 else {
      throw failure(.cannotWriteOutput, "can't be written", errno)
    }
    self.byteCount = byteCount
  }

  /// Replaces the file with one that consists of these parts of it, in this order. The lock is kept.
  ///
  /// If the process is killed meanwhile, or an error occurs, the old file remains. A file without a name
  /// can't be replaced and stays unchanged.
  ///
  /// - Throws: `ReelError.cannotCreateOutput` or `cannotWriteOutput`.
  package func replace(with parts: [Range<Int64>]) throws(ReelError) {
    guard let path else { return }
    // No other process writes a file of this name while the lock is held. A killed one may have left it.
    let partial = path + ".part"
    PartialFiles.insert(partial)
    defer { PartialFiles.forget(partial) }
    let copy = FileDescriptor(rawValue: openFile(partial, Self.flags | O_TRUNC))
    guard copy.rawValue >= 0 else { throw OutputFile.creationFailure(errno, at: path) }
    do throws(ReelError) {
      // Nobody else opens it before it has its name.
      _ = flock(copy.rawValue, LOCK_EX | LOCK_NB)
      let copied = try copyParts(parts, to: copy)
      if fsync(copy.rawValue) != 0 { throw failure(.cannotWriteOutput, "can't be written", errno) }
      if rename(partial, path) != 0 { throw OutputFile.creationFailure(errno, at: path) }
      try? descriptor.close()
      (descriptor, byteCount) = (copy, copied)
    } catch {
      try? copy.close()
      unlink(partial)
      throw error
    }
  }

  // MARK: - Private

  /// The number of bytes that are read at a time.
  private static let pieceLength: Int64 = 1 << 18
  private static let flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC

  /// Returns the number of bytes copied.
  private func copyParts(_ parts: [Range<Int64>], to copy: FileDescriptor) throws(ReelError) -> Int64 {
    var total: Int64 = 0
    for part in parts {
      var offset = part.lowerBound
      while offset < part.upperBound {
        let piece = try read(offset..<min(part.upperBound, offset + Self.pieceLength))
        if piece.isEmpty { throw failure(.cannotWriteOutput, "can't be read", EIO) }
        do { try copy.writeAll(piece) } catch {
          throw failure(.cannotWriteOutput, "can't be written", (error as? Errno)?.rawValue ?? EIO)
        }
        offset += Int64(piece.count)
        total += Int64(piece.count)
      }
    }
    return total
  }

  private static func open(
    _ path: String, inUse: (reason: String, advice: String)
  ) throws(ReelError) -> (descriptor: FileDescriptor, byteCount: Int64) {
    // The process that used the file may have replaced it meanwhile.
    for _ in 0..<10 {
      let descriptor = openFile(path, flags | O_NONBLOCK)
      guard descriptor >= 0 else { throw OutputFile.creationFailure(errno, at: path, "can't be opened") }
      var (opened, named) = (stat(), stat())
      guard fstat(descriptor, &opened) == 0, opened.st_mode & S_IFMT == S_IFREG else {
        close(descriptor)
        throw ReelError(.cannotCreateOutput, "is not a regular file", at: path)
      }
      // On file systems without locks, the file is used without one.
      if lock(descriptor) == EWOULDBLOCK {
        close(descriptor)
        throw ReelError(.cannotCreateOutput, inUse.reason, at: path, advice: inUse.advice)
      }
      if stat(path, &named) == 0, named.st_ino == opened.st_ino, named.st_dev == opened.st_dev,
        fstat(descriptor, &opened) == 0
      {
        return (FileDescriptor(rawValue: descriptor), Int64(opened.st_size))
      }
      close(descriptor)
    }
    throw ReelError(.cannotCreateOutput, "keeps being replaced", at: path)
  }

  /// Returns 0 or an error number.
  private static func lock(_ descriptor: Int32) -> Int32 {
    while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
      if errno != EINTR { return errno }
    }
    return 0
  }

  private static func makeTemporary() throws(ReelError) -> FileDescriptor {
    let folder = FileManager.default.temporaryDirectory.path
    var name = Array("\(folder)/reel-XXXXXX".utf8CString)
    let descriptor = mkstemp(&name)
    guard descriptor >= 0 else {
      throw OutputFile.creationFailure(errno, at: folder, "no temporary file can be made")
    }
    unlink(name)
    _ = fcntl(descriptor, F_SETFL, O_APPEND)
    return FileDescriptor(rawValue: descriptor)
  }

  private func failure(_ kind: ReelError.Kind, _ reason: String, _ code: Int32) -> ReelError {
    ReelError(kind, "\(reason): \(Errno(rawValue: code))", at: path ?? "the temporary file of results")
  }
}

/// Calls `open(2)`. A global function, because members hide the name.
private func openFile(_ path: String, _ flags: Int32) -> Int32 { open(path, flags, 0o644) }

/// The incomplete output files of the process, under their temporary names. Code that ends the process early
/// removes them.
///
/// An output that is released before it is finished removes its own file. A process ended by a signal has no
/// time for that.
package enum PartialFiles {
  private static let paths = Locked<Set<String>>([])

  /// Removes all of them. For a process that ends at once: outputs that are still writing are not notified.
  package static func removeAll() {
    for path in paths.withLock({ $0 }) { unlink(path) }
  }

  static func insert(_ path: String) { paths.withLock { _ = $0.insert(path) } }

  static func forget(_ path: String) { paths.withLock { _ = $0.remove(path) } }
}
