internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelPlayback

/// The posters of the items of the window, fetched ahead and kept compressed.
final class PosterStore: Sendable {
  private enum Poster: Sendable {
    case loading(Task<Void, Never>)
    case bytes([UInt8])
    case missing
  }

  private let fetcher: any Fetching
  private let execution: any Execution
  private let posters = Locked<[(url: URL, poster: Poster)]>([])
  private let onArrival = Locked(Callback<URL>())

  /// A poster is a small picture.
  private static let byteLimit = 8 << 20

  init(fetcher: any Fetching, execution: any Execution) {
    self.fetcher = fetcher
    self.execution = execution
  }

  /// Sets who is told of a poster that has come.
  func setOnArrival(_ handler: @escaping @Sendable (URL) -> Void) { onArrival.withLock { $0.call = handler } }

  /// Fetches these, and lets go of all others.
  func keep(_ urls: [URL]) {
    let (dropped, missing) = posters.withLock { posters in
      let dropped = posters.filter { !urls.contains($0.url) }
      posters.removeAll { !urls.contains($0.url) }
      var missing: [URL] = []
      for url in urls where !posters.contains(where: { $0.url == url }) && !missing.contains(url) {
        missing.append(url)
      }
      return (dropped, missing)
    }
    for case (_, .loading(let task)) in dropped { task.cancel() }
    for url in missing { load(url) }
  }

  func cancel() { keep([]) }

  /// The bytes of a poster that is there.
  func bytes(of url: URL) -> [UInt8]? {
    posters.withLock { posters in
      guard case .bytes(let bytes)? = posters.first(where: { $0.url == url })?.poster else { return nil }
      return bytes
    }
  }

  // MARK: - Private

  private func load(_ url: URL) {
    posters.withLock { posters in
      let task = execution.task { [weak self] in
        guard let self else { return }
        let bytes = try? await fetcher.fetch(FetchRequest(url: url, purpose: .resource)).body.collect(
          upTo: Self.byteLimit)
        set(bytes.map { .bytes($0) } ?? .missing, of: url)
      }
      posters.append((url, .loading(task)))
    }
  }

  private func set(_ poster: Poster, of url: URL) {
    let isWanted = posters.withLock { posters in
      guard let index = posters.firstIndex(where: { $0.url == url }) else { return false }
      posters[index].poster = poster
      return true
    }
    if isWanted, case .bytes = poster { onArrival.withLock { $0.call }?(url) }
  }
}
