import Foundation
import Logging
import ReelCore
import ReelPlayback
import ReelPool

/// Measures the decoding time of a frame on this machine, over the first frames of the first items of a feed.
struct DecodeCalibration {
  private static let itemCount = 3
  private static let frameCount = 150

  private let feed: Feed
  private let logger: Logger

  init(_ feed: Feed, logger: Logger) {
    self.feed = feed
    self.logger = logger
  }

  /// The mean over all decoded frames, with one thread. Throws `ReelError` if there were none.
  func measure(_ fetcher: any Fetching) async throws -> DecodeCost {
    var (frames, duration) = (0, Duration.zero)
    for item in feed.items.prefix(Self.itemCount) {
      try Task.checkCancellation()
      let player = Player(fetcher: fetcher, logger: logger)
      player.setMuted(true)
      player.setRate(.infinity)
      let playerItem = PlayerItem(item.source, headers: item.headers)
      let events = playerItem.events
      let count = Locked(0)
      try player.attach(
        CallbackOutput { [weak player] _ in
          let shown = count.withLock { count in
            count += 1
            return count
          }
          if shown >= Self.frameCount { player?.pause() }
        })
      player.replaceCurrentItem(with: playerItem)
      let statuses = player.timeControlStatus.values
      await withTaskGroup(of: Void.self) { group in
        group.addTask {
          for await event in events {
            switch event {
            case .playedToEnd, .failed: return
            default: break
            }
          }
        }
        group.addTask {
          for await status in statuses where status == .paused && count.withLock({ $0 }) >= Self.frameCount {
            return
          }
        }
        await group.next()
        group.cancelAll()
      }
      let statistics = player.statistics
      frames += statistics.decodedFrameCount
      duration += statistics.decodeDuration
      await player.stopAndWait()
    }
    guard frames > 0 else {
      throw ReelError(.badMedia, "no frame could be decoded to calibrate by", at: feed.name)
    }
    let cost = DecodeCost(frame: .microseconds(Int64((duration / frames / .microseconds(1)).rounded())))
    Console.note(
      "calibrated: \(Int64(cost.frame / .microseconds(1))) us a frame, over \(frames) frames; repeat with --decode-cost \(Int64(cost.frame / .microseconds(1)))us"
    )
    return cost
  }
}
