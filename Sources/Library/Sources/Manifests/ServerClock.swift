internal import Foundation
internal import HTTPTypes
package import ReelCore
package import ReelManifest

/// This machine's clock plus a correction, derived from a server's clock or from the newest segment of a timeline.
package struct ServerClock: WallClock {
  package let base: any WallClock
  /// Added to `base`.
  package let offset: MediaTime

  package var now: WallTime { base.now + offset }

  package func sleep(for duration: Duration) async throws { try await base.sleep(for: duration) }

  /// Returns a clock set by the first source that responds; `base` itself if none does, or if none is named
  /// (UTCTiming, ISO/IEC 23009-1 §5.8.5.7).
  ///
  /// - Parameter timer: The clock for the time limit of a source.
  ///
  /// Throws `CancellationError`.
  package static func synchronized(
    _ base: any WallClock, by sources: [ClockSource], fetcher: any Fetching,
    timer: any MonotonicClock = SystemMonotonicClock()
  ) async throws -> any WallClock {
    for source in sources.prefix(sourceLimit) {
      do {
        let began = base.now
        guard let time = try await time(of: source, fetcher, within: timeLimit, by: timer) else { continue }
        // Assume that the server read its clock halfway through the request.
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
  /// The time limit of a source. A slow clock is useless and delays the first frame.
  private static let timeLimit = Duration.seconds(3)

  /// Returns nil if it takes too long.
  private static func time(
    of source: ClockSource, _ fetcher: any Fetching, within limit: Duration, by timer: any MonotonicClock
  ) async throws -> WallTime? {
    try await withThrowingTaskGroup(of: WallTime?.self) { group in
      group.addTask { try await time(of: source, fetcher) }
      group.addTask {
        try await timer.sleep(for: limit)
        return nil
      }
      defer { group.cancelAll() }
      return try await group.next().flatMap { $0 }
    }
  }

  private static func time(of source: ClockSource, _ fetcher: any Fetching) async throws -> WallTime? {
    switch source {
    case .direct(let time):
      return time
    case .httpHead(let url):
      return try await fetcher.fetch(FetchRequest(.head, url: url, purpose: .clock)).date
    case .httpBody(let url):
      let response = try await fetcher.fetch(FetchRequest(url: url, purpose: .clock))
      let text = String(
        decoding: try await response.body.collect(upTo: byteLimit, orThrow: .server), as: UTF8.self)
      return WallTime(iso8601: text.trimmingCharacters(in: .whitespacesAndNewlines))
    }
  }
}
