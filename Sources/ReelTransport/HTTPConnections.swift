import AsyncHTTPClient
import Foundation
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPCompression
internal import ReelCore

/// The HTTP clients of the process, and what they have in common.
///
/// There is one client, with one pool of connections, for each connect time-out: the one thing that
/// AsyncHTTPClient takes only when a client is made. Clients are kept for the life of the process, so none of
/// them is ever deinitialised without a shutdown, which would be a trap.
enum HTTPConnections {
  /// Compressed answers are inflated up to this size.
  static let maximumInflatedByteCount = 64 << 20

  /// A connection keeps as many buffers of so many bytes for its next reads, also while it waits: by NIO's defaults 4 of
  /// 64 KiB, most of what a player holds beside its media.
  private static let readCount: UInt = 1
  private static let readByteCount = 8 << 10

  private static let clients = Locked<[Duration: HTTPClient]>([:])

  static func client(connectTimeout: Duration) -> HTTPClient {
    clients.withLock { clients in
      if let client = clients[connectTimeout] { return client }
      let client = makeClient(connectTimeout: connectTimeout)
      clients[connectTimeout] = client
      return client
    }
  }

  /// Opens `count` connections beside those that are in use, or takes idle ones for it.
  ///
  /// AsyncHTTPClient's own `preWarmedHTTP1ConnectionCount` is not used: with it a pool opens each idle
  /// connection again that a server closes, for ever and without a pause, and it begins only when the first
  /// connection stands. Here a request that never leaves (`ConnectionMonitor` answers it in place of the
  /// server) takes a connection from the pool as any other would, and leaves it there for the next.
  ///
  /// - Returns: What calls these requests off. To be called when the next requests may come: one that still
  ///   waits for its connection would stand before them, and make the pool open more. The connection is
  ///   opened all the same.
  static func openAhead(
    _ count: Int, for url: URL, on client: HTTPClient, logger: Logger
  ) -> @Sendable () -> Void {
    let headers: HTTPHeaders = [ConnectionMonitor.aheadField: "1"]
    guard count > 0, let request = try? HTTPClient.Request(url: url, headers: headers) else { return {} }
    // Nobody waits for them: where they fail, the next request opens its own connection and says why it
    // can't.
    let tasks = (0..<count).map { _ in
      client.execute(request: request, delegate: IgnoredResponse(), logger: logger)
    }
    return { for task in tasks { task.cancel() } }
  }

  // MARK: - Private

  private static func makeClient(connectTimeout: Duration) -> HTTPClient {
    var configuration = HTTPClient.Configuration()
    configuration.redirectConfiguration = .disallow
    configuration.timeout = .init(connect: .nanoseconds(connectTimeout.nanoseconds))
    // A limit makes requests wait for each other; how much is fetched at once is for the caller to bound.
    // A preload that rests keeps its connection, with the rest of a body unread: no item may have to wait for it.
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 4096
    // Else a refused connection is tried for as long as the connect time-out lasts; `RetryPolicy` decides
    // here.
    configuration.connectionPool.retryConnectionEstablishment = false
    configuration.decompression = .enabled(limit: .size(maximumInflatedByteCount))
    configuration.http1_1ConnectionDebugInitializer = { channel in
      addMonitor(to: channel, openedAt: .now)
    }
    configuration.http2StreamChannelDebugInitializer = { channel in
      addMonitor(to: channel, openedAt: nil)
    }
    return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
  }

  private static func addMonitor(
    to channel: any Channel, openedAt: ContinuousClock.Instant?
  ) -> EventLoopFuture<Void> {
    channel.eventLoop.submit {
      if openedAt != nil, let options = channel.syncOptions {
        try options.setOption(.maxMessagesPerRead, value: readCount)
        try options.setOption(
          .recvAllocator,
          value: AdaptiveRecvByteBufferAllocator(
            minimum: 1024, initial: 4096, maximum: readByteCount))
      }
      let pipeline = channel.pipeline.syncOperations
      let decompressor = try pipeline.handler(type: NIOHTTPResponseDecompressor.self)
      try pipeline.addHandler(ConnectionMonitor(openedAt: openedAt), position: .before(decompressor))
    }
  }
}

/// Takes an answer and does nothing with it.
private final class IgnoredResponse: HTTPClientResponseDelegate {
  func didFinishRequest(task: HTTPClient.Task<Void>) {}
}

extension Duration {
  /// In nanoseconds, at most `Int64.max`.
  var nanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    guard !overflow else { return seconds < 0 ? .min : .max }
    let (sum, carry) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
    return carry ? .max : sum
  }
}
