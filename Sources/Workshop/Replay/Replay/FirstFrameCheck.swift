internal import Logging
internal import ReelCore
internal import ReelPlayback
internal import ReelPool

/// Opens items that a walk has left before their first frame, as if the viewer had waited.
///
/// Each item gets a player of its own, which loads it up to the first frame with the usual retries. An item that fails is
/// dead; one that shows a frame was only slow. One that does neither within the limit is slow as long as its media
/// arrives without errors, and dead otherwise.
struct FirstFrameCheck: Sendable {
  /// The items that are opened at a time.
  static let concurrency = 4

  private let fetcher: any Fetching
  private let configuration: PlayerConfiguration
  private let limit: Duration
  private let logger: Logger

  /// - Parameter limit: The longest time for an item, by the clock of the configuration.
  init(fetcher: any Fetching, configuration: PlayerConfiguration, limit: Duration, logger: Logger) {
    self.fetcher = fetcher
    self.configuration = configuration
    self.limit = limit
    self.logger = logger
  }

  /// The items that fail, in the order of the feed.
  ///
  /// - Parameter indices: The indices of the items to open.
  /// - Throws: `CancellationError` if the task is cancelled.
  func failures(of indices: [Int], in feed: Feed) async throws -> [WalkReport.FailedItem] {
    var waiting = indices.makeIterator()
    var failures: [WalkReport.FailedItem] = []
    try await SideBySide.run(Self.concurrency, next: { waiting.next() }) { index in
      await error(of: feed.items[index])
    } ended: { index, result in
      guard let error = try result.get() else { return }
      failures.append(
        WalkReport.FailedItem(
          index: index, id: feed.items[index].id.description, error: error.description))
    }
    return failures.sorted { $0.index < $1.index }
  }

  // MARK: - Private

  /// The error of an item that is dead; nil for one that is not, or if the task was cancelled.
  private func error(of item: FeedItem) async -> ReelError? {
    let traffic = OpeningTraffic(fetcher)
    let player = Player(fetcher: traffic, configuration: configuration, logger: logger)
    let playerItem = PlayerItem(item.source, headers: item.headers)
    player.preloadTarget = PreloadTarget(stage: .firstFrame)
    player.replaceCurrentItem(with: playerItem)
    let error = await withTaskGroup(of: ReelError?.self) { group in
      group.addTask {
        for await status in playerItem.status.values {
          switch status {
          case .readyToPlay: return nil
          case .failed(let error): return error
          case .unknown: break
          }
        }
        return nil
      }
      group.addTask { await self.lateError(of: playerItem, traffic) }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
    await player.stopAndWait()
    return error?.located(at: item.source.name)
  }

  /// Waits for the limit, and returns the error of an item that is dead by then.
  private func lateError(of item: PlayerItem, _ traffic: OpeningTraffic) async -> ReelError? {
    do {
      try await configuration.clock.sleep(for: limit / 2)
      let byteCount = traffic.mediaByteCount
      try await configuration.clock.sleep(for: limit / 2)
      // It is being retried.
      if item.remainingRetries.value < configuration.retryPolicy.attempts, let entry = item.errorLog.last {
        return entry.error
      }
      if traffic.mediaByteCount > byteCount { return nil }
      return traffic.lastFailure
        ?? ReelError(
          .timedOut, "no frame within \(DurationText.readable(limit))",
          advice: "allow more time with --timeout")
    } catch {
      return nil
    }
  }
}

/// Counts the bytes of media, and keeps the error of the last attempt that failed.
private final class OpeningTraffic: Fetching {
  private struct State {
    var mediaByteCount = 0
    var lastFailure: ReelError?
  }

  private let base: any Fetching
  private let state = Locked(State())

  init(_ base: any Fetching) { self.base = base }

  var mediaByteCount: Int { state.withLock { $0.mediaByteCount } }
  var lastFailure: ReelError? { state.withLock { $0.lastFailure } }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    var request = request
    request.addFailedAttempt { [self] in note($0) }
    let isMedia = request.purpose != .manifest && request.purpose != .clock
    do {
      return try await base.fetch(request).wrappingBody { [self] body in
        do {
          let chunk = try await body.next()
          if let chunk, isMedia { state.withLock { $0.mediaByteCount += chunk.count } }
          return chunk
        } catch {
          note(error)
          throw error
        }
      }
    } catch {
      note(error)
      throw error
    }
  }

  private func note(_ error: any Error) {
    guard let error = error as? ReelError, error.kind != .cancelled else { return }
    state.withLock { $0.lastFailure = error }
  }
}
