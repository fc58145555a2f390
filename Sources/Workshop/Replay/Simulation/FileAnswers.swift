internal import Foundation
package import ReelCore

/// The contents of local files that simulations read, kept in memory: a walk visits an item several times, and each piece
/// that is read outside of the simulation costs several changes of threads.
///
/// May be shared by simulations that run side by side. A file that changes meanwhile is seen as it was, or as it is.
package final class FileAnswers: Sendable {
  fileprivate struct File {
    let size: Int64
    var pieces: [Int64: [UInt8]] = [:]
    /// A count of uses.
    var lastUse: Int
  }

  private struct State {
    var files: [URL: File] = [:]
    var byteCount = 0
    var useCount = 0
  }

  /// The body of an answer, piece by piece.
  package struct Body: Sendable {
    fileprivate let url: URL
    fileprivate var offset: Int64
    fileprivate let end: Int64

    /// Nothing is left.
    package var isAtEnd: Bool { offset >= end }

    /// What is to be fetched where `FileAnswers.take` has nothing.
    package var missing: FetchRequest {
      let start = offset / pieceByteCount * pieceByteCount
      return FetchRequest(
        url: url, range: ByteRange(offset: start, length: pieceByteCount), purpose: .resource)
    }

    /// Goes on behind the part of these bytes, which `missing` has asked for, that belongs to the body; gives that part.
    mutating func take(_ bytes: [UInt8]) throws(ReelError) -> [UInt8] {
      let start = Int(offset % pieceByteCount)
      let count = min(bytes.count - start, Int(end - offset))
      guard count > 0 else {
        throw ReelError(
          .badMedia, "the file was truncated while it was read: byte \(offset) is gone",
          at: url.absoluteString)
      }
      offset += Int64(count)
      return start == 0 && count == bytes.count ? bytes : Array(bytes[start..<(start + count)])
    }
  }

  /// 512 MiB by default.
  package static let defaultByteLimit = 512 << 20

  private let byteLimit: Int
  private let state = Locked(State())

  /// - Parameter byteLimit: The bytes that are kept; files that were used longest ago go first.
  package init(byteLimit: Int = FileAnswers.defaultByteLimit) { self.byteLimit = byteLimit }

  /// The bytes that are kept.
  package var byteCount: Int { state.withLock { $0.byteCount } }

  /// The answer of a file that was read before; nil for what has to be fetched.
  package func answer(to request: FetchRequest) -> (head: FetchResponse, body: Body)? {
    guard request.url.isFileURL, request.method == .get else { return nil }
    let size = state.withLock { state -> Int64? in
      state.useCount += 1
      state.files[request.url]?.lastUse = state.useCount
      return state.files[request.url]?.size
    }
    let offset = request.range?.offset ?? 0
    guard let size, offset < size || offset == 0 && size == 0 else { return nil }
    let length = min(request.range?.length ?? .max, size - offset)
    let head = FetchResponse(
      url: request.url, contentType: nil, bodyOffset: offset, bodyByteCount: length, resourceByteCount: size,
      supportsRanges: true, body: FetchBody { nil })
    return (head, Body(url: request.url, offset: offset, end: offset + length))
  }

  /// Notes a real answer; nil where it is not of a file whose size is known.
  package func note(_ response: FetchResponse, to request: FetchRequest) -> Body? {
    guard request.url.isFileURL, request.method == .get, response.url == request.url,
      let size = response.resourceByteCount, let length = response.bodyByteCount
    else { return nil }
    state.withLock { state in
      state.useCount += 1
      guard state.files[request.url] == nil else { return }
      state.files[request.url] = File(size: size, lastUse: state.useCount)
    }
    return Body(url: request.url, offset: response.bodyOffset, end: response.bodyOffset + length)
  }

  /// The next bytes of a body, which goes on behind them; nil where they are not there.
  package func take(_ body: inout Body) -> [UInt8]? {
    let index = body.offset / pieceByteCount
    guard let piece = state.withLock({ $0.files[body.url]?.pieces[index] }) else { return nil }
    return try? body.take(piece)
  }

  /// Keeps what `Body.missing` has asked for.
  package func keep(_ bytes: [UInt8], for request: FetchRequest) {
    guard let offset = request.range?.offset, !bytes.isEmpty else { return }
    let dropped = state.withLock { state -> [File] in
      guard state.files[request.url] != nil, state.files[request.url]?.pieces[offset / pieceByteCount] == nil
      else { return [] }
      state.files[request.url]?.pieces[offset / pieceByteCount] = bytes
      state.byteCount += bytes.count
      guard state.byteCount > byteLimit else { return [] }
      var dropped: [File] = []
      // The order of uses has no ties, so that of the dictionary does not matter.
      for (url, file) in state.files.sorted(by: { $0.value.lastUse < $1.value.lastUse })
      where url != request.url {
        guard state.byteCount > byteLimit else { break }
        state.byteCount -= file.pieces.values.reduce(0) { $0 + $1.count }
        state.files[url]?.pieces = [:]
        dropped.append(file)
      }
      return dropped
    }
    withExtendedLifetime(dropped) {}
  }
}

/// Files are read in parts of 128 KiB.
private let pieceByteCount: Int64 = 128 << 10
