import Foundation
import ReelCore

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// An open file. Reads block: call them where that may be. The descriptor is closed when the value is let go.
final class LocalFile: Sendable {
  /// The URL, for errors.
  let location: String
  /// Nil where it is no regular file.
  let byteCount: Int64?
  private let descriptor: Int32

  /// Opens the file for reading.
  ///
  /// - Throws: `ReelError`: `noSuchFile` where it is not there or can't be read, `badMedia` for a directory.
  init(url: URL) throws {
    location = url.absoluteString
    let path = url.path(percentEncoded: false)
    guard url.host()?.isEmpty ?? true || url.host() == "localhost", !path.contains("\0") else {
      throw ReelError(.noSuchFile, "no path of this machine", at: location)
    }
    // Without O_NONBLOCK a pipe that nobody writes to would block the open itself.
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

  /// At most `count` bytes from `offset`, none at the end. Of a stream the next bytes are given, whatever
  /// `offset` is; while none are there, `isCancelled` is asked ten times a second.
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

/// `read(2)`, which the method of the same name hides.
private func systemRead(_ descriptor: Int32, _ buffer: UnsafeMutablePointer<UInt8>?, _ count: Int) -> Int {
  read(descriptor, buffer, count)
}
