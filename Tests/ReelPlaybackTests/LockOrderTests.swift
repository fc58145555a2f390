import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelPlayback
import ReelSources

@Suite("The order of locks", .hangLimit)
struct LockOrderTests {
  @Test("A fetcher may use the player while its request is cancelled by a seek, an end or another item")
  func cancellationThatAsks() async throws {
    for step in Step.allCases {
      let fetcher = AskingFetcher()
      let player = Player(
        fetcher: fetcher, configuration: PlayerConfiguration(), logger: silentLogger)
      fetcher.setQuestion { [weak player] in _ = player?.currentTime }
      let url = try #require(URL(string: "http://reel.test/hls-ts/low/index.m3u8"))
      player.replaceCurrentItem(with: PlayerItem(.url(url)))
      try await until { fetcher.isWaiting }
      switch step {
      case .seek: _ = try await player.seek(to: MediaTime(value: 5, timescale: 2))
      case .replace: player.replaceCurrentItem(with: nil)
      case .stop: await player.stopAndWait()
      }
      try await until { fetcher.answerCount > 0 }
      await player.stopAndWait()
    }
  }

  private enum Step: CaseIterable {
    case seek
    case replace
    case stop
  }

  /// The second segment does not come; who cancels it is asked back.
  private final class AskingFetcher: Fetching {
    private struct State {
      var question: (@Sendable () -> Void)?
      var isWaiting = false
      var answerCount = 0
    }

    private let state = Locked(State())
    private let base = FixtureFetcher { request, _ in
      request.url.lastPathComponent == "segment-1.ts" ? .never : .none
    }

    var isWaiting: Bool { state.withLock { $0.isWaiting } }
    var answerCount: Int { state.withLock { $0.answerCount } }

    func setQuestion(_ question: @escaping @Sendable () -> Void) { state.withLock { $0.question = question } }

    func fetch(_ request: FetchRequest) async throws -> FetchResponse {
      try await withTaskCancellationHandler {
        if request.url.lastPathComponent == "segment-1.ts" { state.withLock { $0.isWaiting = true } }
        return try await base.fetch(request)
      } onCancel: {
        state.withLock { $0.question }?()
        state.withLock { $0.answerCount += 1 }
      }
    }
  }
}
