import Foundation
import ReelCore
import ReelPlayback
import ReelPool

/// Gets the bytes of feed files: local ones, those of servers, and standard input.
struct FeedReading: Sendable {
  private let headers: [HeaderField]
  private let timeout: Double
  private let fetcher: any Fetching
  private let readsStandardInput: Bool

  init(_ options: SourceOptions, _ fetcher: any Fetching, readsStandardInput: Bool = false) throws {
    self.readsStandardInput = readsStandardInput
    headers = try options.loading().headers
    timeout = options.timeout
    self.fetcher = fetcher
  }

  /// - Parameter argument: A path, a URL, or `-` for standard input.
  /// - Returns: The bytes, and where they come from in the end.
  /// - Throws: `ReelError`, of kind `timedOut` if a server or a pipe takes longer than `--timeout` for all of it.
  func read(_ argument: String) async throws -> (bytes: [UInt8], location: MediaSource) {
    let source = try MediaSource(argument: argument)
    switch source {
    case .url(let url) where !url.isFileURL:
      let request = FetchRequest(url: url, headers: headers, purpose: .source)
      // A server may send bytes for ever, each of them in time.
      return try await withDeadline(seconds: timeout, source: source.name, fetcher: fetcher) { fetcher in
        let response = try await fetcher.fetch(request)
        return (try await response.body.collect(upTo: FeedLimits().byteCount), .url(response.url))
      }
    case .url(let url):
      return (try LocalText.bytes(path: url.path, limit: FeedLimits().byteCount), source)
    case .standardInput:
      guard readsStandardInput else {
        throw ReelError(.usage, "the feed of a lab must be a file or URL", at: "-")
      }
      return try await withDeadline(seconds: timeout, source: source.name, fetcher: fetcher) { _ in
        (try await Self.standardInput(upTo: FeedLimits().byteCount), source)
      }
    }
  }

  // MARK: - Private

  /// Reads on a thread of its own: a pipe may give nothing for as long as it likes.
  private static func standardInput(upTo limit: Int) async throws -> [UInt8] {
    let (pieces, continuation) = AsyncThrowingStream.makeStream(of: Data.self)
    Thread {
      do {
        while let piece = try FileHandle.standardInput.read(upToCount: 1 << 16), !piece.isEmpty {
          continuation.yield(piece)
        }
        continuation.finish()
      } catch {
        continuation.finish(throwing: ReelError(.noSuchFile, "can't be read", at: "standard input"))
      }
    }.start()
    var bytes: [UInt8] = []
    for try await piece in pieces {
      bytes += piece
      guard bytes.count <= limit else {
        throw ReelError(.badManifest, "larger than the limit of \(limit) bytes", at: "standard input")
      }
    }
    // The stream also ends when the task is cancelled.
    try Task.checkCancellation()
    return bytes
  }
}

extension PoolConfiguration {
  /// The settings of a pool that a walk measures.
  init(
    walkingWith slotCount: Int, _ policy: any PreloadPolicy, firstRung: FirstRung,
    loading: LoadingConfiguration, adaptsBitRate: Bool
  ) {
    self.init()
    self.slotCount = slotCount
    self.policy = policy
    self.firstRung = firstRung
    player.loading = loading
    player.adaptsBitRate = adaptsBitRate
    // Bytes read from a file count like bytes received over a network.
    player.loading.fetchesFiles = true
  }
}
