import Foundation
import HTTPTypes
import Logging
import NIOPosix
import ReelCore
import Synchronization

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// An open file. Reads block. The descriptor is closed when the value is released.
final class LocalFile: Sendable {
  /// The path, for errors.
  let location: String
  /// Nil if it is not a regular file.
  let byteCount: Int64?
  private let descriptor: Int32

  /// Opens the file for reading.
  ///
  /// - Throws: `ReelError`: `noSuchFile` if it does not exist or can't be read, `badMedia` for a directory.
  init(url: URL) throws {
    let path = url.path(percentEncoded: false)
    location = path
    guard url.host()?.isEmpty ?? true || url.host() == "localhost", !path.contains("\0") else {
      throw ReelError(.noSuchFile, "not a path on this machine", at: url.absoluteString)
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
  /// `offset` is; while there are none, it checks `isCancelled` ten times a second.
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
    let reason = code == ENOENT ? "no such file" : ReelError.systemText(code).lowercased()
    return ReelError(.noSuchFile, reason, at: location)
  }
}

/// Calls `read(2)`, which the method of the same name hides.
private func systemRead(_ descriptor: Int32, _ buffer: UnsafeMutablePointer<UInt8>?, _ count: Int) -> Int {
  read(descriptor, buffer, count)
}

/// Reads local files on SwiftNIO's thread pool.
///
/// A readable path that is not a regular file, such as a pipe or standard input (`file:///dev/stdin`), is one
/// stream of unknown size.
final class FileFetcher: Fetching {
  private let logger: Logger

  init(logger: Logger) {
    self.logger = logger
  }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let session = TransferSession(request)
    session.recordRequest()
    do {
      try Task.checkCancellation()
      let file = try await NIOThreadPool.singleton.runIfActive { try LocalFile(url: request.url) }
      let offset = request.range?.offset ?? 0
      logger.debug("file", metadata: ["url": "\(request.url)", "offset": "\(offset)"])
      guard let size = file.byteCount else {
        guard request.range == nil else {
          throw ReelError(.unsupported, "ranges of a stream can't be requested", at: file.location)
        }
        return response(to: session, file: file, offset: 0, length: nil)
      }
      guard offset < size || (offset == 0 && size == 0) else {
        throw ReelError(
          .badMedia, "byte \(offset) is beyond the end: it has \(size) bytes", at: file.location)
      }
      let length = min(request.range?.length ?? .max, size - offset)
      return response(to: session, file: file, offset: offset, length: length)
    } catch {
      session.finish(.failure(error))
      throw error
    }
  }

  // MARK: - Private

  private func response(
    to session: TransferSession, file: LocalFile, offset: Int64, length: Int64?
  ) -> FetchResponse {
    let body: FetchBody
    if session.request.method == .head {
      session.finish(.success(()))
      body = FetchBody { nil }
    } else {
      let chunks = FileBody(file: file, offset: offset, length: length, session: session)
      body = FetchBody(onEnd: { session.finish($0) }) { try await chunks.next() }
    }
    return FetchResponse(
      url: session.request.url, contentType: nil, bodyOffset: offset, bodyByteCount: length,
      resourceByteCount: file.byteCount, supportsRanges: file.byteCount != nil,
      body: body)
  }
}

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

  /// Returns the next bytes, or nil after the last.
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
    session.recordFirstByte()
    session.recordBytes(bytes.count)
    position.withLock { $0 = start + Int64(bytes.count) }
    return bytes
  }
}

/// Delivers the content of `data:` URLs (RFC 2397).
struct DataFetcher: Fetching {
  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let session = TransferSession(request)
    session.recordRequest()
    do {
      let response = try response(to: session)
      session.finish(.success(()))
      return response
    } catch {
      session.finish(.failure(error))
      throw error
    }
  }

  // MARK: - Private

  private func response(to session: TransferSession) throws -> FetchResponse {
    let request = session.request
    // Errors must not contain a key.
    let name = request.purpose == .key ? "data:" : "\(request.url.absoluteString.prefix(64))…"
    guard let (contentType, whole) = Self.content(of: request.url.absoluteString) else {
      throw ReelError(.badMedia, "the data: URL can't be read", at: name)
    }
    let offset = request.range?.offset ?? 0
    guard offset < whole.count || offset == 0 else {
      throw ReelError(
        .badMedia, "byte \(offset) is beyond the end: it has \(whole.count) bytes",
        at: name)
    }
    let part = whole.dropFirst(Int(offset)).prefix(Int(clamping: request.range?.length ?? .max))
    let rest = Locked(request.method == .head || part.isEmpty ? nil : Array(part))
    return FetchResponse(
      url: request.url, contentType: contentType, bodyOffset: offset, bodyByteCount: Int64(part.count),
      resourceByteCount: Int64(whole.count), supportsRanges: true,
      body: FetchBody {
        let bytes = rest.withLock { $0.take() }
        if let bytes { session.recordBytes(bytes.count) }
        return bytes
      })
  }

  /// `data:[<mediatype>][;base64],<data>`.
  private static func content(of text: String) -> (contentType: String, bytes: [UInt8])? {
    guard let comma = text.firstIndex(of: ","), let colon = text.firstIndex(of: ":"), colon < comma else {
      return nil
    }
    var type = text[text.index(after: colon)..<comma]
    let payload = String(text[text.index(after: comma)...])
    let isBase64 = type.lowercased().hasSuffix(";base64")
    if isBase64 { type = type.dropLast(7) }
    guard let bytes = isBase64 ? base64(payload) : percentDecoded(payload) else { return nil }
    return (type.isEmpty ? "text/plain;charset=US-ASCII" : String(type), bytes)
  }

  private static func base64(_ text: String) -> [UInt8]? {
    guard let plain = percentDecoded(text) else { return nil }
    // Some URLs lack the padding, or use the URL alphabet (RFC 4648 §5).
    var letters = plain.compactMap { byte -> UInt8? in
      switch byte {
      case UInt8(ascii: "-"): UInt8(ascii: "+")
      case UInt8(ascii: "_"): UInt8(ascii: "/")
      case 0x09, 0x0A, 0x0D, 0x20, UInt8(ascii: "="): nil
      default: byte
      }
    }
    guard letters.count % 4 != 1 else { return nil }
    while letters.count % 4 != 0 { letters.append(UInt8(ascii: "=")) }
    return Data(base64Encoded: Data(letters)).map { Array($0) }
  }

  private static func percentDecoded(_ text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      else { return nil }
      bytes.append(value)
      rest.removeFirst(2)
    }
    return bytes
  }
}
