internal import Foundation
package import ReelCore
internal import ReelFFmpeg
internal import ReelSources
internal import SystemPackage
internal import Synchronization

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

/// Reports how many bytes are read from another source, and adds those of a local file to a start-up report.
///
/// Confined like its base.
final class CountedByteSource: ByteSource {
  private let base: any ByteSource
  private let recorder: StartupRecorder
  private let record: (Int) -> Void
  private var position: Int64 = 0
  /// Bytes before this position were already counted when the source's format was detected.
  private let countedEnd = Int64(SourceSniffer.byteCount)

  /// - Parameter record: Called with the number of bytes of each read, including bytes that are read again.
  init(_ base: any ByteSource, recorder: StartupRecorder, record: @escaping (Int) -> Void = { _ in }) {
    self.base = base
    self.recorder = recorder
    self.record = record
  }

  var byteCount: Int64? { base.byteCount }
  var isSeekable: Bool { base.isSeekable }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    let count = try base.read(into: buffer)
    guard count > 0 else { return count }
    position += Int64(count)
    recorder.add(.segment, bytes: max(0, position - max(countedEnd, position - Int64(count))))
    record(count)
    return count
  }

  func seek(to offset: Int64) throws {
    try base.seek(to: offset)
    position = offset
  }
}

/// An unnamed temporary file: nothing is left behind, however the process ends.
///
/// Ownership: it closes its descriptor.
final class SpoolFile: Sendable {
  let descriptor: FileDescriptor
  /// The name of the resource that is stored in the file, from a server; nil for a pipe.
  private let resource: String?
  private let count = Atomic<Int64>(0)

  /// - Parameter resource: The name of the resource to keep, because its server does not support ranges; nil
  ///   for a pipe.
  /// - Throws: `ReelError.cannotCreateOutput`; `server` for a resource, because only this source fails.
  init(of resource: String?) throws(ReelError) {
    self.resource = resource
    let path = FileManager.default.temporaryDirectory.appendingPathComponent(
      "reel-\(UUID().uuidString).spool"
    ).path
    do {
      descriptor = try FileDescriptor.open(
        FilePath(path), .readWrite, options: [.create, .exclusiveCreate, .closeOnExec],
        permissions: .ownerReadWrite)
    } catch {
      throw Self.fault(
        .cannotCreateOutput, "a temporary file can't be created: \(error)", at: path, of: resource)
    }
    try? FileManager.default.removeItem(atPath: path)
  }

  deinit { try? descriptor.close() }

  /// The number of bytes that have been written.
  var byteCount: Int64 { count.load(ordering: .acquiring) }

  /// Throws `ReelError.cannotWriteOutput`; `server` for a resource.
  func append(_ bytes: [UInt8]) throws(ReelError) {
    do {
      try descriptor.writeAll(bytes)
    } catch {
      throw Self.fault(.cannotWriteOutput, "the temporary file can't be written: \(error)", of: resource)
    }
    count.add(Int64(bytes.count), ordering: .releasing)
  }

  private static func fault(
    _ kind: ReelError.Kind, _ reason: String, at path: String? = nil, of resource: String?
  ) -> ReelError {
    guard let resource else { return ReelError(kind, reason, at: path) }
    return ReelError(
      .server, "the server does not support ranges, and \(reason)", at: resource,
      advice: "set TMPDIR to another folder")
  }
}
