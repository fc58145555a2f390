import NIOPosix
import ReelCore
import Synchronization

/// The bytes of a part of a file, read on demand. For one consumer.
final class FileBody: Sendable {
  private static let chunkByteCount: Int64 = 128 << 10

  private let file: LocalFile
  private let session: TransferSession
  private let end: Int64?
  private let position: Locked<Int64>
  private let isCancelled = Atomic<Bool>(false)

  init(file: LocalFile, offset: Int64, length: Int64?, session: TransferSession) {
    self.file = file
    self.session = session
    end = length.map { offset + $0 }
    position = Locked(offset)
  }

  /// The next bytes, or nil after the last.
  ///
  /// - Throws: `ReelError`, `CancellationError`.
  func next() async throws -> [UInt8]? {
    try Task.checkCancellation()
    let start = position.withLock { $0 }
    let count = min(Self.chunkByteCount, (end ?? .max) - start)
    guard count > 0 else { return nil }
    let bytes = try await withTaskCancellationHandler {
      try await NIOThreadPool.singleton.runIfActive { [file, self] in
        try file.read(Int(count), at: start) { self.isCancelled.load(ordering: .relaxed) }
      }
    } onCancel: {
      isCancelled.store(true, ordering: .relaxed)
    }
    try Task.checkCancellation()
    guard !bytes.isEmpty else {
      if let end, start < end {
        throw ReelError(
          .badMedia, "the file was truncated while it was read: byte \(start) is gone", at: file.location)
      }
      return nil
    }
    session.noteFirstByte()
    session.noteBytes(bytes.count)
    position.withLock { $0 = start + Int64(bytes.count) }
    return bytes
  }
}
