import Foundation
import ReelCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A resource of an `Origin`: bytes in memory, or an open file that is read while it is sent.
final class Resource: Sendable {
  enum Storage: Sendable {
    case memory([UInt8])
    /// Closed with the resource.
    case file(descriptor: Int32)
  }

  let storage: Storage
  let byteCount: Int64
  let contentType: String
  /// A strong entity tag, with quotes.
  let entityTag: String
  /// Additional header fields.
  let headers: [HeaderField]
  let status: Int

  /// - Parameter version: Distinguishes these bytes from others of the same size at the same path.
  init(
    bytes: [UInt8], contentType: String, version: Int = 0, headers: [HeaderField] = [], status: Int = 200
  ) {
    storage = .memory(bytes)
    byteCount = Int64(bytes.count)
    self.contentType = contentType
    self.headers = headers
    self.status = status
    entityTag = "\"\(bytes.count)-\(version)\""
  }

  /// Opens a file below `directory`; nil if there is none, or if the path leads outside.
  init?(path: String, below directory: URL) {
    let root = directory.resolvingSymlinksInPath().path(percentEncoded: false)
    let parts = path.split(separator: "/", omittingEmptySubsequences: true)
    guard !parts.isEmpty, !path.contains("\0"), !parts.contains(where: { $0 == ".." || $0 == "." }) else {
      return nil
    }
    let base = root.hasSuffix("/") ? root : root + "/"
    // The real path resolves symbolic links.
    guard let real = realpath(base + parts.joined(separator: "/"), nil) else { return nil }
    defer { free(real) }
    guard String(cString: real).hasPrefix(base) else { return nil }
    let descriptor = open(real, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      close(descriptor)
      return nil
    }
    storage = .file(descriptor: descriptor)
    byteCount = Int64(status.st_size)
    contentType = MediaType.type(forPath: path)
    headers = []
    self.status = 200
    let attributes = try? FileManager.default.attributesOfItem(atPath: String(cString: real))
    let changed = (attributes?[.modificationDate] as? Date)?.timeIntervalSince1970 ?? 0
    entityTag = "\"\(byteCount)-\(changed)\""
  }

  deinit {
    if case .file(let descriptor) = storage { close(descriptor) }
  }

  /// At most `count` bytes from `offset`; fewer if the file became shorter.
  func read(_ count: Int, at offset: Int64) -> [UInt8] {
    switch storage {
    case .memory(let bytes):
      let start = min(Int(offset), bytes.count)
      return Array(bytes[start..<min(start + count, bytes.count)])
    case .file(let descriptor):
      return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
        while filled < count {
          let target = UnsafeMutableRawBufferPointer(
            rebasing: UnsafeMutableRawBufferPointer(buffer)[filled...])
          let result = pread(descriptor, target.baseAddress, count - filled, off_t(offset) + off_t(filled))
          guard result > 0 else { break }
          filled += result
        }
      }
    }
  }
}
