import Foundation
import ReelCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// An open file. Reads block. The descriptor is closed when the value is released.
final class LocalFile: Sendable {
  /// The URL in errors.
  let location: String
  /// Nil if it is not a regular file.
  let byteCount: Int64?
  private let descriptor: Int32

  /// Opens the file for reading.
  ///
  /// - Throws: `ReelError`: `noSuchFile` if it does not exist or can't be read, `badMedia` for a directory.
  init(url: URL) throws {
    location = url.absoluteString
    let path = url.path(percentEncoded: false)
    guard url.host()?.isEmpty ?? true || url.host() == "localhost", !path.contains("\0") else {
      throw ReelError(.noSuchFile, "not a path on this machine", at: location)
    }
    // Without O_NONBLOCK, opening a pipe without a writer would block.
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { throw Self.failure(errno, at: location) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      let code = errno
      close(descriptor)
      throw Self.failure(code, at: location)
    }
    switch status.st_mode & S_IFMT {
    case S_IFDIR:
      close(descriptor)
      throw ReelError(.badMedia, "is a directory", at: location, advice: "name a file in it")
    case S_IFREG: byteCount = Int64(status.st_size)
    default: byteCount = nil
    }
    self.descriptor = descriptor
  }

  deinit {
    close(descriptor)
  }

  /// Reads at most `count` bytes from `offset`; none at the end. A stream delivers its next bytes whatever
  /// `offset` is; while there are none, `isCancelled` is asked ten times a second.
  func read(_ count: Int, at offset: Int64, isCancelled: () -> Bool) throws -> [UInt8] {
    while true {
      var code: Int32 = 0
      let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
        let result =
          byteCount == nil
          ? systemRead(descriptor, buffer.baseAddress, count)
          : pread(descriptor, buffer.baseAddress, count, off_t(offset))
        filled = max(0, result)
        if result < 0 { code = errno }
      }
      switch code {
      case 0: return bytes
      case EINTR: continue
      case EAGAIN:
        if isCancelled() { throw CancellationError() }
        var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&poller, 1, 100)
      default: throw Self.failure(code, at: location)
      }
    }
  }

  // MARK: - Private

  private static func failure(_ code: Int32, at location: String) -> ReelError {
    let reason = code == ENOENT ? "no such file" : String(cString: strerror(code)).lowercased()
    return ReelError(.noSuchFile, reason, at: location)
  }
}

/// Calls `read(2)`, which the method of the same name hides.
private func systemRead(_ descriptor: Int32, _ buffer: UnsafeMutablePointer<UInt8>?, _ count: Int) -> Int {
  read(descriptor, buffer, count)
}
