internal import Foundation
package import ReelCore
import ReelFFmpeg
internal import SystemPackage

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// A local file, or a pipe, as a source for a demuxer.
///
/// Ownership: it closes the descriptor that it opened; standard input stays open.
package final class FileByteSource: ByteSource {
  package let byteCount: Int64?
  /// False for pipes, sockets and terminals.
  package let isSeekable: Bool

  private let descriptor: FileDescriptor
  private let ownsDescriptor: Bool
  private let isCancelled: @Sendable () -> Bool
  private var offset: Int64 = 0
  /// Keeps the descriptor open.
  private var spool: SpoolFile?

  /// Opens a file. Throws `ReelError`: `noSuchFile`, or `badMedia` for a directory.
  package convenience init(path: String, isCancelled: @escaping @Sendable () -> Bool = { false })
    throws(ReelError)
  {
    let descriptor: FileDescriptor
    do {
      // Opening a FIFO must not wait for a writer.
      descriptor = try FileDescriptor.open(FilePath(path), .readOnly, options: [.nonBlocking, .closeOnExec])
    } catch {
      let reason = (error as? Errno) == .noSuchFileOrDirectory ? "no such file" : "can't be read: \(error)"
      throw ReelError(.noSuchFile, reason, at: path)
    }
    self.init(descriptor: descriptor, ownsDescriptor: true, isCancelled: isCancelled)
    var isDirectory: ObjCBool = false
    if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), isDirectory.boolValue {
      throw ReelError(.badMedia, "is a directory", at: path, advice: "name a file in it")
    }
  }

  /// Opens standard input.
  package static func standardInput(isCancelled: @escaping @Sendable () -> Bool) -> FileByteSource {
    FileByteSource(descriptor: .standardInput, ownsDescriptor: false, isCancelled: isCancelled)
  }

  /// Opens a spooled file, which stays open as long as this source.
  convenience init(_ file: SpoolFile, isCancelled: @escaping @Sendable () -> Bool) {
    self.init(descriptor: file.descriptor, ownsDescriptor: false, isCancelled: isCancelled)
    spool = file
  }

  init(descriptor: FileDescriptor, ownsDescriptor: Bool, isCancelled: @escaping @Sendable () -> Bool) {
    self.descriptor = descriptor
    self.ownsDescriptor = ownsDescriptor
    self.isCancelled = isCancelled
    byteCount = try? descriptor.seek(offset: 0, from: .end)
    isSeekable = byteCount != nil
  }

  deinit {
    if ownsDescriptor { try? descriptor.close() }
  }

  package func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    do {
      guard isSeekable else {
        try waitUntilReadable()
        return try descriptor.read(into: buffer)
      }
      let count = try descriptor.read(fromAbsoluteOffset: offset, into: buffer)
      offset += Int64(count)
      return count
    } catch let error as Errno {
      throw ReelError(.badMedia, "can't be read: \(error)", place: .byte(offset))
    }
  }

  package func seek(to offset: Int64) throws { self.offset = offset }

  /// Returns the first `count` bytes of a seekable file, or fewer, without changing the position.
  func prefix(_ count: Int) throws -> [UInt8] {
    var bytes: [UInt8] = []
    let kept = offset
    defer { offset = kept }
    offset = 0
    while bytes.count < count {
      let chunk = try chunk(count - bytes.count)
      if chunk.isEmpty { break }
      bytes.append(contentsOf: chunk)
    }
    return bytes
  }

  /// Returns at most `count` of the next bytes; empty at the end.
  func chunk(_ count: Int) throws -> [UInt8] {
    try [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      initialized = try read(into: UnsafeMutableRawBufferPointer(buffer))
    }
  }

  // MARK: - Private

  /// Waits until a pipe has bytes, because a read of one can't be interrupted.
  private func waitUntilReadable() throws {
    var poll = pollfd(fd: descriptor.rawValue, events: Int16(POLLIN), revents: 0)
    while true {
      if isCancelled() { throw CancellationError() }
      let ready = withUnsafeMutablePointer(to: &poll) { systemPoll($0, 1, 100) }
      if ready > 0 { return }
      if ready < 0, errno != EINTR { return }
    }
  }
}

/// Calls `poll(2)`. A global function, because members hide the name.
private func systemPoll(_ descriptors: UnsafeMutablePointer<pollfd>, _ count: nfds_t, _ milliseconds: Int32)
  -> Int32
{
  poll(descriptors, count, milliseconds)
}
