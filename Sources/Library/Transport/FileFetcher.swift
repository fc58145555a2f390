import Foundation
import Logging
import NIOPosix
import ReelCore

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
    session.noteRequest()
    do {
      try Task.checkCancellation()
      let file = try await NIOThreadPool.singleton.runIfActive { try LocalFile(url: request.url) }
      let offset = request.range?.offset ?? 0
      logger.debug("file", metadata: ["url": "\(request.url)", "offset": "\(offset)"])
      guard let size = file.byteCount else {
        guard request.range == nil else {
          throw ReelError(
            .unsupported, "ranges of a stream can't be requested", at: request.url.absoluteString)
        }
        return response(to: session, file: file, offset: 0, length: nil)
      }
      guard offset < size || (offset == 0 && size == 0) else {
        throw ReelError(
          .badMedia, "byte \(offset) is beyond the end: it has \(size) bytes",
          at: request.url.absoluteString)
      }
      let length = min(request.range?.length ?? .max, size - offset)
      return response(to: session, file: file, offset: offset, length: length)
    } catch {
      session.finish()
      throw error
    }
  }

  // MARK: - Private

  private func response(
    to session: TransferSession, file: LocalFile, offset: Int64, length: Int64?
  ) -> FetchResponse {
    let body: FetchBody
    if session.request.method == .head {
      session.finish()
      body = FetchBody { nil }
    } else {
      let chunks = FileBody(file: file, offset: offset, length: length, session: session)
      body = FetchBody(onEnd: { _ in session.finish() }) { try await chunks.next() }
    }
    return FetchResponse(
      url: session.request.url, contentType: nil, bodyOffset: offset, bodyByteCount: length,
      resourceByteCount: file.byteCount, supportsRanges: file.byteCount != nil,
      body: body)
  }
}
