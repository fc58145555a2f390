internal import Foundation
internal import ReelCore
internal import ReelManifest

/// This machine's clock plus a correction, derived from a server's clock or from the newest segment of a timeline.
struct ServerClock: WallClock {
  let base: any WallClock
  /// What is added to `base`.
  let offset: MediaTime

  var now: WallTime { base.now + offset }

  func sleep(for duration: Duration) async throws { try await base.sleep(for: duration) }

  /// A clock set by the first source that answers; `base` itself where none does, or none is named (UTCTiming,
  /// ISO/IEC 23009-1 §5.8.5.7).
  ///
  /// - Parameter timer: what is waited by for a source that does not answer.
  ///
  /// Throws `CancellationError`.
  static func synchronized(
    _ base: any WallClock, by sources: [ClockSource], fetcher: any Fetching, headers: [HeaderField],
    timer: any MonotonicClock = SystemMonotonicClock()
  ) async throws -> any WallClock {
    for source in sources.prefix(sourceLimit) {
      do {
        let began = base.now
        guard let time = try await time(of: source, fetcher, headers, within: timeLimit, by: timer) else {
          continue
        }
        // The server read its clock about halfway.
        let taken = base.now - began
        let middle = began + MediaTime(value: taken.value / 2, timescale: taken.timescale)
        return ServerClock(base: base, offset: time - middle)
      } catch is ReelError {
        continue
      }
    }
    return base
  }

  // MARK: - Private

  private static let sourceLimit = 4
  private static let byteLimit = 4096
  /// A clock that takes longer to tell the time is of no use, and keeps a frame waiting.
  private static let timeLimit = Duration.seconds(3)

  /// Nil where it takes too long.
  private static func time(
    of source: ClockSource, _ fetcher: any Fetching, _ headers: [HeaderField], within limit: Duration,
    by timer: any MonotonicClock
  ) async throws -> WallTime? {
    try await withThrowingTaskGroup(of: WallTime?.self) { group in
      group.addTask { try await time(of: source, fetcher, headers) }
      group.addTask {
        try await timer.sleep(for: limit)
        return nil
      }
      defer { group.cancelAll() }
      return try await group.next().flatMap { $0 }
    }
  }

  private static func time(
    of source: ClockSource, _ fetcher: any Fetching, _ headers: [HeaderField]
  ) async throws -> WallTime? {
    switch source {
    case .direct(let time):
      return time
    case .httpHead(let url):
      return try await fetcher.fetch(FetchRequest(.head, url: url, headers: headers, purpose: .clock)).date
    case .httpBody(let url):
      let response = try await fetcher.fetch(FetchRequest(url: url, headers: headers, purpose: .clock))
      let text = String(decoding: try await response.body.collect(upTo: byteLimit), as: UTF8.self)
      return WallTime(iso8601: text.trimmingCharacters(in: .whitespacesAndNewlines))
    }
  }
}
