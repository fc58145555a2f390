internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelPlayback

/// The posters of the window's items, fetched ahead and kept compressed. The one that is wanted is decoded.
final class PosterStore: Sendable {
  private enum Stage: Sendable {
    case loading(Task<Void, Never>)
    case fetched([UInt8])
    case decoding([UInt8])
    case decoded(VideoFrame, [UInt8])
    case missing
  }

  private struct State {
    var posters: [(url: URL, stage: Stage)] = []
    var isClosed = false
  }

  private let fetcher: any Fetching
  private let runtime: any PlayerRuntime
  private let logger: Logger
  private let onArrival: @Sendable () -> Void
  private let state = Locked(State())

  /// The maximum size of a poster, which is a small image.
  private static let byteLimit = 8 << 20

  /// - Parameter onArrival: Called after each poster that has been fetched or decoded.
  init(
    fetcher: any Fetching, runtime: any PlayerRuntime, logger: Logger,
    onArrival: @escaping @Sendable () -> Void
  ) {
    self.fetcher = fetcher
    self.runtime = runtime
    self.logger = logger
    self.onArrival = onArrival
  }

  /// Fetches these posters, and releases all others.
  func keep(_ urls: [URL]) {
    let dropped = state.withLock { state in
      let dropped = state.posters.filter { !urls.contains($0.url) }
      state.posters.removeAll { !urls.contains($0.url) }
      guard !state.isClosed else { return dropped }
      for url in urls where !state.posters.contains(where: { $0.url == url }) {
        state.posters.append((url, .loading(load(url))))
      }
      return dropped
    }
    for case (_, .loading(let task)) in dropped { task.cancel() }
  }

  /// Releases all posters, and fetches no more.
  func close() {
    state.withLock { $0.isClosed = true }
    keep([])
  }

  /// Returns a decoded poster, and keeps only its bytes. If it is fetched, but not decoded yet, decoding begins, and the
  /// result is nil.
  func takeFrame(of url: URL) -> VideoFrame? {
    state.withLock { state in
      guard let index = state.posters.firstIndex(where: { $0.url == url }) else { return nil }
      switch state.posters[index].stage {
      case .decoded(let frame, let bytes):
        state.posters[index].stage = .fetched(bytes)
        return frame
      case .fetched(let bytes):
        state.posters[index].stage = .decoding(bytes)
        decode(bytes, of: url)
        return nil
      case .loading, .decoding, .missing: return nil
      }
    }
  }

  // MARK: - Private

  private func load(_ url: URL) -> Task<Void, Never> {
    runtime.task { [weak self, fetcher] in
      let bytes = try? await fetcher.fetch(FetchRequest(url: url, purpose: .resource)).body.collect(
        upTo: Self.byteLimit)
      // The poster of a cancelled task may have been requested again by now.
      if !Task.isCancelled { self?.set(bytes.map { .fetched($0) } ?? .missing, of: url) }
    }
  }

  /// Decodes a poster on a thread of its own, because that takes longer than a swipe may wait for a turn of the pool.
  private func decode(_ bytes: [UInt8], of url: URL) {
    runtime.task { [weak self, runtime, logger] in
      let frame = try? await BlockingThread.run(named: "pool-poster", on: runtime) {
        let image = try StillImage(decoding: bytes, name: url.absoluteString, logger: logger)
        return VideoFrame(image.frame, time: .zero, stream: image.stream, frameRate: nil)
      }
      self?.set(frame.map { .decoded($0, bytes) } ?? .missing, of: url)
    }
  }

  private func set(_ stage: Stage, of url: URL) {
    let isWanted = state.withLock { state in
      guard let index = state.posters.firstIndex(where: { $0.url == url }) else { return false }
      state.posters[index].stage = stage
      return true
    }
    guard isWanted else { return }
    if case .missing = stage { return }
    onArrival()
  }
}
