import Foundation
import ReelCore
import ReelFFmpeg
import ReelTesting
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelReading
@testable import ReelSources

/// Collects what a player shows.
final class Recording: FrameOutput {
  let isExternal = false
  let frames = Locked<[Shown]>([])
  let isFinished = Locked(false)

  func show(_ frame: VideoFrame) throws {
    let shown = try Shown(frame)
    frames.withLock { $0.append(shown) }
  }

  func finish() throws { isFinished.withLock { $0 = true } }

  var all: [Shown] { frames.withLock { $0 } }
}

extension AsyncStream {
  /// The first element that fulfils `condition`; nil where the stream ends before.
  func first(where condition: (Element) -> Bool) async -> Element? {
    for await element in self where condition(element) { return element }
    return nil
  }
}

extension PlayerEvent {
  var isEnd: Bool {
    switch self {
    case .playedToEnd, .failed: true
    default: false
    }
  }
}

/// Plays a source to its end as fast as it goes.
func playThrough(
  _ source: MediaSource, configuration: PlayerConfiguration = PlayerConfiguration(),
  fetcher: any Fetching = makeFetcher()
) async throws -> (shown: [Shown], end: PlayerEvent?, item: PlayerItem) {
  let player = Player(fetcher: fetcher, configuration: configuration, logger: silentLogger)
  let recording = Recording()
  try player.attach(recording)
  let item = PlayerItem(source)
  let events = item.events
  player.setRate(.infinity)
  player.replaceCurrentItem(with: item)
  let end = await events.first { $0.isEnd }
  await player.stopAndWait()
  return (recording.all, end, item)
}

@Suite struct PlayerTests {
  @Test(arguments: PresentationCase.all)
  func `Every frame of a presentation is shown once, in order`(_ presentation: PresentationCase)
    async throws
  {
    let configuration = presentation.configuration
    let path = Fixtures.folder.appending(path: presentation.path).path
    let result = try await playThrough(try MediaSource(argument: path), configuration: configuration)
    #expect(result.end == .playedToEnd(time: result.item.duration.value ?? .zero) || result.end != nil)
    let expected = try presentation.expected()
    #expect(result.shown.map(\.md5) == expected.map(\.md5))
    #expect(result.shown == expected)
  }
}
