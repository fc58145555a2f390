import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelTestSupport
import Testing

@testable import ReelPlayback

/// A player with an output that keeps what is shown, and waits that end.
final class StressScene: Sendable {
  let player: Player
  let fetcher: FixtureFetcher
  let witness: Witness

  /// Keeps all frames in order.
  final class Witness: FrameOutput {
    let isExternal = false
    private struct State {
      var shown: [Shown] = []
      var isFinished = false
      var lateCount = 0
    }
    private let state = Locked(State())

    var all: [Shown] { state.withLock { $0.shown } }
    var count: Int { state.withLock { $0.shown.count } }
    var isFinished: Bool { state.withLock { $0.isFinished } }
    /// Frames shown after `finish()`.
    var lateCount: Int { state.withLock { $0.lateCount } }

    func show(_ frame: VideoFrame) throws {
      let shown = try Shown(frame)
      state.withLock { state in
        state.shown.append(shown)
        if state.isFinished { state.lateCount += 1 }
      }
    }

    func finish() throws { state.withLock { $0.isFinished = true } }
  }

  /// How long anything may take. A hang is reported with the player's state before the test itself is ended.
  static let patience = HangLimit.duration / 2

  init(
    fetcher: FixtureFetcher = FixtureFetcher(),
    configuration: PlayerConfiguration = StressScene.configuration()
  )
    throws
  {
    self.fetcher = fetcher
    witness = Witness()
    player = Player(fetcher: fetcher, configuration: configuration, logger: silentLogger)
    try player.attach(witness)
  }

  /// Retries take almost no time, and frames are hardly late.
  static func configuration(threads: Int = 1) -> PlayerConfiguration {
    var configuration = PlayerConfiguration()
    configuration.clock = StepClock()
    configuration.retryPolicy = ItemRetryPolicy(
      attempts: 3, baseDelay: .milliseconds(1), maximumDelay: .milliseconds(4))
    configuration.loading.decoderThreads = threads
    return configuration
  }

  /// What `body` gives. A hang is reported with the player's state, and thrown.
  func bounded<Result: Sendable>(
    _ what: String, _ body: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    let outcome = Locked<Swift.Result<Result, any Error>?>(nil)
    let task = Task {
      do {
        let value = try await body()
        outcome.withLock { $0 = .success(value) }
      } catch {
        outcome.withLock { $0 = .failure(error) }
      }
    }
    defer { task.cancel() }
    try await until(what) { outcome.withLock { $0 } != nil }
    return try #require(outcome.withLock { $0 }).get()
  }

  /// Returns when `condition` holds. A wait in vain is reported with the player's state.
  func until(_ what: String, _ condition: @Sendable () -> Bool) async throws {
    try await ReelTestSupport.until({ "\(what) has not come\n\(state)" }, condition)
  }

  /// All that can be told of the player from outside.
  var state: String {
    let item = player.currentItem.value
    let statistics = player.statistics
    return """
      status \(player.timeControlStatus.value), rate \(player.rate.value), time \(player.currentTime)
      item \(item?.source.name ?? "none"), \(item.map { "\($0.status.value)" } ?? ""), \
      stage \(item.map { "\($0.preloadStage.value)" } ?? ""), loaded \(item?.loadedTimeRanges.value ?? []), \
      full \(item?.isPlaybackBufferFull.value ?? false), empty \(item?.isPlaybackBufferEmpty.value ?? false), \
      keeps up \(item?.isPlaybackLikelyToKeepUp.value ?? false)
      shown \(statistics.shownFrameCount), dropped \(statistics.droppedFrameCount), stalls \(statistics.stallCount), \
      ring \(statistics.ring.map { "\($0)" } ?? "none"), buffered \(statistics.bufferedDuration)
      errors \(item?.errorLog.map(\.error) ?? [])
      requests \(fetcher.requests.count), under way \(fetcher.heldCount)
      """
  }

  /// Waits for the first frame, or the failure, of an item.
  func opened(_ item: PlayerItem) async throws {
    try await until("the first frame of \(item.source.name)") { item.status.value != .unknown }
  }

  /// Seeks, and gives what was shown from the frame of the seek on.
  func seek(_ clip: StressClip, to time: MediaTime) async throws -> [Shown] {
    let mark = witness.count
    let player = player
    let isDone = try await bounded("a seek to \(time) in \(clip.path)") { try await player.seek(to: time) }
    #expect(isDone, "nothing else was asked for")
    let wanted = clip.expected[clip.index(at: time)]
    let shown = witness.all[mark...]
    let first = shown.firstIndex { $0.md5 == wanted.md5 }
    #expect(
      first != nil,
      "\(clip.path) at \(time.seconds): frame \(clip.index(at: time)) wanted, shown \(clip.indices(of: shown))"
    )
    return Array(shown[(first ?? shown.endIndex)...])
  }
}

extension StressClip {
  /// Which frames these are, for messages.
  func indices(of shown: some Sequence<Shown>) -> [Int?] { shown.map { index(of: $0) } }
}
