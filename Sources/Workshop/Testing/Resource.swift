import Foundation
import HTTPTypes
import NIOCore
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
  /// The time of the last change; nil if unknown.
  let modificationTime: WallTime?
  /// Additional header fields.
  let headers: HTTPFields
  let status: Int

  /// - Parameter version: Distinguishes these bytes from others of the same size at the same path.
  init(
    bytes: [UInt8], contentType: String, version: Int = 0, headers: HTTPFields = [:], status: Int = 200
  ) {
    storage = .memory(bytes)
    byteCount = Int64(bytes.count)
    self.contentType = contentType
    self.headers = headers
    self.status = status
    entityTag = "\"\(bytes.count)-\(version)\""
    modificationTime = nil
  }

  /// - Parameter version: Distinguishes these bytes from others of the same size at the same path.
  convenience init(_ response: Origin.Response, at path: String, version: Int = 0) {
    self.init(
      bytes: response.bytes, contentType: response.contentType ?? MediaType.type(forPath: path),
      version: version, headers: response.headers, status: response.status)
  }

  /// Opens a file below `directory`; nil if there is none, or if the path leads outside.
  init?(path: String, below directory: URL) {
    let parts = path.split(separator: "/", omittingEmptySubsequences: true)
    guard !parts.isEmpty, !path.contains("\0"), !parts.contains(where: { $0 == ".." || $0 == "." }),
      let root = Self.realPath(directory.path(percentEncoded: false))
    else { return nil }
    let base = root.hasSuffix("/") ? root : root + "/"
    guard let real = Self.realPath(base + parts.joined(separator: "/")), real.hasPrefix(base) else {
      return nil
    }
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
    headers = [:]
    self.status = 200
    let attributes = try? FileManager.default.attributesOfItem(atPath: real)
    let changed = attributes?[.modificationDate] as? Date
    entityTag = "\"\(byteCount)-\(changed?.timeIntervalSince1970 ?? 0)\""
    modificationTime = changed.map { WallTime($0) }
  }

  deinit {
    if case .file(let descriptor) = storage { close(descriptor) }
  }

  /// Appends at most `count` bytes from `offset`; fewer if the file became shorter.
  func read(_ count: Int, at offset: Int64, into buffer: inout ByteBuffer) {
    switch storage {
    case .memory(let bytes):
      let start = min(Int(offset), bytes.count)
      buffer.writeBytes(bytes[start..<min(start + count, bytes.count)])
    case .file(let descriptor):
      buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { space in
        var filled = 0
        while filled < count {
          let result = pread(
            descriptor, space.baseAddress.map { $0 + filled }, count - filled, off_t(offset) + off_t(filled))
          guard result > 0 else { break }
          filled += result
        }
        return filled
      }
    }
  }

  /// Returns the whole resource.
  func readAll() -> [UInt8] {
    var buffer = ByteBuffer()
    read(Int(byteCount), at: 0, into: &buffer)
    return Array(buffer.readableBytesView)
  }

  /// Returns the path without symbolic links; nil if there is no such file.
  private static func realPath(_ path: String) -> String? {
    guard let real = realpath(path, nil) else { return nil }
    defer { free(real) }
    return String(cString: real)
  }
}
