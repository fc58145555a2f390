internal import Foundation
internal import ReelCore
internal import SystemPackage

/// An unnamed temporary file: nothing is left behind, however the process ends.
///
/// Ownership: it closes its descriptor.
final class SpoolFile: Sendable {
  let descriptor: FileDescriptor
  private let count = Locked<Int64>(0)

  /// Throws `ReelError.cannotCreateOutput`.
  init() throws(ReelError) {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent(
      "reel-\(UUID().uuidString).spool"
    ).path
    do {
      descriptor = try FileDescriptor.open(
        FilePath(path), .readWrite, options: [.create, .exclusiveCreate], permissions: .ownerReadWrite)
    } catch {
      throw ReelError(.cannotCreateOutput, "a temporary file can't be created: \(error)", at: path)
    }
    try? FileManager.default.removeItem(atPath: path)
  }

  deinit { try? descriptor.close() }

  /// Bytes that have been written.
  var byteCount: Int64 { count.withLock { $0 } }

  /// Throws `ReelError.cannotWriteOutput`.
  func append(_ bytes: [UInt8]) throws(ReelError) {
    do {
      try descriptor.writeAll(bytes)
    } catch {
      throw ReelError(.cannotWriteOutput, "the temporary file can't be written: \(error)")
    }
    count.withLock { $0 += Int64(bytes.count) }
  }
}
