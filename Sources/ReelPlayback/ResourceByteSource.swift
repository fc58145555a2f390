internal import Foundation
internal import ReelCore
internal import ReelFFmpeg

/// A remote file as a demuxer reads it: the answer that is already on its way goes on as long as reading goes forward,
/// and a seek sends a range request.
///
/// Confined to its demuxer's thread; the transfers run in tasks of their own, which end with the scope or with this
/// object.
final class ResourceByteSource: ByteSource {
  let byteCount: Int64?
  let isSeekable: Bool

  private let url: URL
  private let fetcher: any Fetching
  private let headers: [HeaderField]
  private let scope: LoadScope
  private let recorder: StartupRecorder
  private var feed: Feed
  /// The byte that the reader is at, and the one that the feed gives next.
  private var position: Int64 = 0
  private var feedPosition: Int64 = 0

  /// One transfer into a pipe.
  private struct Feed {
    let pipe: BytePipe
    let task: Task<Void, Never>
    let cancellation: Int
  }

  /// A seek forward by no more than this is read through: less than a round trip's worth of bytes.
  private static let readThroughByteCount: Int64 = 64 << 10

  init(
    response: FetchResponse, read: [UInt8], isSeekable: Bool, fetcher: any Fetching, headers: [HeaderField],
    scope: LoadScope, recorder: StartupRecorder
  ) {
    url = response.url
    byteCount = response.resourceByteCount
    self.isSeekable = isSeekable && response.supportsRanges && response.resourceByteCount != nil
    self.fetcher = fetcher
    self.headers = headers
    self.scope = scope
    self.recorder = recorder
    feed = Self.start(in: scope) { pipe in
      try await pipe.write(read)
      for try await chunk in response.body { try await pipe.write(chunk) }
    }
  }

  deinit { Self.stop(feed, in: scope) }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    if let byteCount, position >= byteCount { return 0 }
    try catchUp()
    let count = try feed.pipe.read(into: buffer)
    position += Int64(count)
    feedPosition = position
    recorder.add(.segment, bytes: Int64(count))
    return count
  }

  func seek(to offset: Int64) throws { position = offset }

  // MARK: - Private

  /// Brings the feed to where the reader is.
  private func catchUp() throws {
    guard position != feedPosition else { return }
    let distance = position - feedPosition
    if distance > 0, distance <= Self.readThroughByteCount {
      var rest = Int(distance)
      while rest > 0 {
        let count = try withUnsafeTemporaryAllocation(byteCount: min(rest, 16 << 10), alignment: 1) {
          try feed.pipe.read(into: $0)
        }
        if count == 0 { break }
        rest -= count
      }
    } else {
      Self.stop(feed, in: scope)
      let (fetcher, url) = (fetcher, url)
      let request = FetchRequest(
        url: url, range: ByteRange(offset: position, length: nil), headers: headers, purpose: .segment)
      recorder.add(.segment, requests: 1)
      let start = position
      feed = Self.start(in: scope) { pipe in
        let response = try await fetcher.fetch(request)
        guard response.bodyOffset == start else {
          throw ReelError(.server, "the server does not keep to byte ranges", at: url.reelName)
        }
        for try await chunk in response.body { try await pipe.write(chunk) }
      }
    }
    feedPosition = position
  }

  private static func start(
    in scope: LoadScope, _ body: @escaping @Sendable (BytePipe) async throws -> Void
  ) -> Feed {
    let pipe = BytePipe()
    let task = Task {
      do {
        try await body(pipe)
        pipe.finish()
      } catch {
        pipe.fail(error)
      }
    }
    let cancellation = scope.onCancel {
      task.cancel()
      pipe.close()
    }
    return Feed(pipe: pipe, task: task, cancellation: cancellation)
  }

  private static func stop(_ feed: Feed, in scope: LoadScope) {
    feed.task.cancel()
    feed.pipe.close()
    scope.forget(feed.cancellation)
  }
}
