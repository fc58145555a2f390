internal import Foundation
internal import ReelCore
internal import SystemPackage

/// An unnamed temporary file: nothing is left behind, however the process ends.
///
/// Ownership: it closes its descriptor.
final class SpoolFile: Sendable {
  let descriptor: FileDescriptor
  /// The name of the resource that is stored in the file, from a server; nil for a pipe.
  private let resource: String?
  private let count = Locked<Int64>(0)

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
  var byteCount: Int64 { count.withLock { $0 } }

  /// Throws `ReelError.cannotWriteOutput`; `server` for a resource.
  func append(_ bytes: [UInt8]) throws(ReelError) {
    do {
      try descriptor.writeAll(bytes)
    } catch {
      throw Self.fault(.cannotWriteOutput, "the temporary file can't be written: \(error)", of: resource)
    }
    count.withLock { $0 += Int64(bytes.count) }
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
