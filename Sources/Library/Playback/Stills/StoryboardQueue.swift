internal import ReelCore

/// Hands the key frames of a plan to several threads, and their tiles in order to one.
///
/// The readers may be ahead of the consumer by a limited number of tiles.
final class StoryboardQueue: Sendable {
  /// What became of a key frame.
  enum Outcome: Sendable {
    case tile(Storyboard.Tile)
    case missing(Storyboard.Missing)
    /// There is no key frame, and nothing is wrong.
    case nothing
  }

  private struct State {
    /// The number of key frames; nil until it is known.
    var jobCount: Int?
    var taken = 0
    var given = 0
    var outcomes: [Int: Outcome] = [:]
    var failure: (any Error)?
    var runningCount = 0
  }

  private let state = Locked(State())
  /// Counts the tiles that may still be begun.
  private let room: any BlockingSemaphore
  private let news: any BlockingSemaphore

  init(runtime: any PlayerRuntime, limit: Int) {
    room = runtime.makeSemaphore()
    news = runtime.makeSemaphore()
    for _ in 0..<limit { room.signal() }
  }

  // MARK: Readers

  /// Sets the number of key frames, once it is known.
  func setCount(_ count: Int) {
    state.withLock { $0.jobCount = count }
    room.signal()
    news.signal()
  }

  /// The next key frame to read; nil if there is none. Waits while the consumer is behind.
  func take() -> Int? {
    room.wait()
    let job = state.withLock { state -> Int? in
      guard state.failure == nil, state.jobCount.map({ state.taken < $0 }) ?? true else { return nil }
      state.taken += 1
      return state.taken - 1
    }
    // Others that wait end, too.
    if job == nil { room.signal() }
    return job
  }

  func put(_ outcome: Outcome, at job: Int) {
    state.withLock { $0.outcomes[job] = outcome }
    news.signal()
  }

  func fail(_ error: any Error) {
    state.withLock { $0.failure = $0.failure ?? error }
    room.signal()
    news.signal()
  }

  func beginThread() { state.withLock { $0.runningCount += 1 } }

  func endThread() {
    state.withLock { $0.runningCount -= 1 }
    news.signal()
  }

  // MARK: Consumer

  /// The outcome of the next key frame in order; nil after the last one. Waits for it.
  func next() throws -> Outcome? {
    while true {
      let step = try state.withLock { state -> Outcome?? in
        if let failure = state.failure { throw failure }
        if let outcome = state.outcomes.removeValue(forKey: state.given) {
          state.given += 1
          return outcome
        }
        return state.jobCount.map { state.given >= $0 } ?? false ? .some(nil) : nil
      }
      if let step {
        if step != nil { room.signal() }
        return step
      }
      news.wait()
    }
  }

  /// Waits until all threads have ended.
  func finish() {
    while state.withLock({ $0.runningCount > 0 }) { news.wait() }
  }
}
