internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelReading
internal import ReelSources

/// The posters of the window's items, fetched ahead and kept compressed. The one that is wanted is decoded.
///
/// Posters of other items stay compressed within a limit, so that a viewer who comes back sees them at once.
final class PosterStore: Sendable {
  fileprivate enum Stage: Sendable {
    case loading(Task<Void, Never>, PriorityFetcher.Slot)
    case fetched([UInt8])
    case decoding([UInt8])
    case decoded(VideoFrame, [UInt8])
    case missing

    var bytes: [UInt8]? {
      switch self {
      case .fetched(let bytes), .decoding(let bytes), .decoded(_, let bytes): bytes
      case .loading, .missing: nil
      }
    }
  }

  fileprivate struct Entry: Sendable {
    let url: URL
    var stage: Stage
  }

  fileprivate struct State {
    /// The latest wanted come last.
    var entries: [Entry] = []
    var isClosed = false
  }

  private let network: PriorityFetcher
  private let runtime: any PlayerRuntime
  private let logger: Logger
  private let onArrival: @Sendable () -> Void
  private let state = Locked(State())

  /// The maximum size of a poster, which is a small image.
  private static let byteLimit = 8 << 20
  /// The maximum size of all posters together, beyond those of the window.
  static let keptByteCount = 4 << 20

  /// - Parameter onArrival: Called after each poster that has been fetched or decoded.
  init(
    network: PriorityFetcher, runtime: any PlayerRuntime, logger: Logger,
    onArrival: @escaping @Sendable () -> Void
  ) {
    self.network = network
    self.runtime = runtime
    self.logger = logger
    self.onArrival = onArrival
  }

  /// Fetches these posters, and no others.
  ///
  /// - Parameter awaited: The one that a viewer waits for.
  func keep(_ urls: [URL], awaited: URL?) {
    for url in urls { fetch(url, isAwaited: url == awaited) }
    // Released after the lock, because the slots of transfers have locks of their own.
    let dropped = state.withLock { $0.dropOthers(than: urls) }
    for case .loading(let task, _) in dropped.map(\.stage) { task.cancel() }
  }

  /// Fetches a poster, unless it is there. One that a viewer waits for has the rank of the current item, with which it
  /// shares the network; others have that of the first preload.
  func fetch(_ url: URL, isAwaited: Bool) {
    let rank = isAwaited ? 0 : 1
    if let stage = state.withLock({ $0.use(url) }) {
      if case .loading(_, let slot) = stage, slot.rank != rank { slot.rank = rank }
      return
    }
    let slot = network.makeSlot(rank: rank)
    state.withLock { state in
      guard !state.isClosed else { return }
      state.entries.append(Entry(url: url, stage: .loading(load(url, through: slot), slot)))
    }
  }

  /// Releases all posters, and fetches no more.
  func close() {
    state.withLock { $0.isClosed = true }
    keep([], awaited: nil)
  }

  /// Returns a decoded poster, and keeps only its bytes. If it is fetched, but not decoded yet, decoding begins, and the
  /// result is nil.
  func takeFrame(of url: URL) -> VideoFrame? {
    state.withLock { state in
      guard let index = state.entries.firstIndex(where: { $0.url == url }) else { return nil }
      switch state.entries[index].stage {
      case .decoded(let frame, let bytes):
        state.entries[index].stage = .fetched(bytes)
        return frame
      case .fetched(let bytes):
        state.entries[index].stage = .decoding(bytes)
        decode(bytes, of: url)
        return nil
      case .loading, .decoding, .missing: return nil
      }
    }
  }

  // MARK: - Private

  private func load(_ url: URL, through slot: PriorityFetcher.Slot) -> Task<Void, Never> {
    runtime.task { [weak self] in
      let bytes = try? await slot.fetch(FetchRequest(url: url, purpose: .resource)).body.collect(
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
    let old = state.withLock { state -> Stage? in
      guard let index = state.entries.firstIndex(where: { $0.url == url }) else { return nil }
      defer { state.entries[index].stage = stage }
      return state.entries[index].stage
    }
    guard old != nil else { return }
    if case .missing = stage { return }
    onArrival()
  }
}

extension PosterStore.State {
  /// Returns how far a poster is, and counts it as the latest wanted; nil if it is not there.
  fileprivate mutating func use(_ url: URL) -> PosterStore.Stage? {
    guard let index = entries.firstIndex(where: { $0.url == url }) else { return nil }
    let entry = entries.remove(at: index)
    entries.append(entry)
    return entry.stage
  }

  /// Removes the posters that are neither wanted nor kept, and returns them. Those that are kept are compressed.
  fileprivate mutating func dropOthers(than urls: [URL]) -> [PosterStore.Entry] {
    var (kept, dropped): ([PosterStore.Entry], [PosterStore.Entry]) = ([], [])
    var byteCount = 0
    for var entry in entries.reversed() {
      if urls.contains(entry.url) {
        kept.append(entry)
      } else if !isClosed, let bytes = entry.stage.bytes, byteCount + bytes.count <= PosterStore.keptByteCount
      {
        byteCount += bytes.count
        if case .decoded = entry.stage {
          dropped.append(entry)
          entry.stage = .fetched(bytes)
        }
        kept.append(entry)
      } else {
        dropped.append(entry)
      }
    }
    entries = kept.reversed()
    return dropped
  }
}
