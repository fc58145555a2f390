internal import Foundation
internal import ReelCore
internal import ReelPlayback

/// The posters of the window's items, fetched ahead and kept compressed.
final class PosterStore: Sendable {
  private enum Poster: Sendable {
    case loading(Task<Void, Never>)
    case bytes([UInt8])
    case missing
  }

  private struct State {
    var posters: [(url: URL, poster: Poster)] = []
    var isClosed = false
  }

  private let fetcher: any Fetching
  private let runtime: any PlayerRuntime
  private let onArrival: @Sendable () -> Void
  private let state = Locked(State())

  /// The maximum size of a poster, which is a small image.
  private static let byteLimit = 8 << 20

  /// - Parameter onArrival: Called after each poster that has been fetched.
  init(fetcher: any Fetching, runtime: any PlayerRuntime, onArrival: @escaping @Sendable () -> Void) {
    self.fetcher = fetcher
    self.runtime = runtime
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

  /// Returns the bytes of a poster; `nil` if it has not been fetched.
  func bytes(of url: URL) -> [UInt8]? {
    state.withLock { state in
      guard case .bytes(let bytes)? = state.posters.first(where: { $0.url == url })?.poster else {
        return nil
      }
      return bytes
    }
  }

  // MARK: - Private

  private func load(_ url: URL) -> Task<Void, Never> {
    runtime.task { [weak self, fetcher] in
      let bytes = try? await fetcher.fetch(FetchRequest(url: url, purpose: .resource)).body.collect(
        upTo: Self.byteLimit)
      // The poster of a cancelled task may have been requested again by now.
      if !Task.isCancelled { self?.set(bytes.map { .bytes($0) } ?? .missing, of: url) }
    }
  }

  private func set(_ poster: Poster, of url: URL) {
    let isWanted = state.withLock { state in
      guard let index = state.posters.firstIndex(where: { $0.url == url }) else { return false }
      state.posters[index].poster = poster
      return true
    }
    if isWanted, case .bytes = poster { onArrival() }
  }
}
