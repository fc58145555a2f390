internal import Foundation
package import ReelCore
package import ReelPool

/// A walk through a feed by the arithmetic of chunks, as papers on short video compute it.
///
/// The rules are those of the [simulator](https://github.com/AItransCompetition/Short-Video-Streaming-Challenge) of the
/// Short Video Streaming Challenge of ACM Multimedia 2022:
///
/// - One chunk is downloaded after the other. It takes a round trip, and its bytes at the rate of the link. A download is
///   not cancelled: if the viewer has left the item, its bytes are wasted.
/// - Nothing else costs time: no manifest, initialization segment, connection, demuxing or decoding.
/// - An item can be played when its first chunk is there, and stalls while the next one is not.
///
/// The rest is a pool's: the plan of the walk with its settles, ``PreloadPolicy`` with its order, targets, bounds and
/// slots, and the player's choice of the rung within them. When a chunk is there, at each swipe and each settle, and after
/// ``PreloadPlan/reviewInterval``, the policy is asked, and the first item in its order that wants more gets the next
/// chunk. What papers know in advance, policies know too: ladders and durations of all items.
///
/// Differences from a pool: throughput is measured chunk by chunk. Played media is kept until the item loses its slot.
/// Playback starts and resumes with one chunk, whatever its duration. Limits of memory and of decoders do not apply.
///
/// A pure computation: the same walk gives the same report on every machine.
package struct ChunkWalk: Sendable {
  package var feed: Feed
  package var chunks: FeedChunks
  package var plan: WalkPlan
  /// For the report. `isVirtual` and `isChunkLevel` are set by the walk.
  package var settings: WalkSettings
  package var label: String
  /// Slots, policy, and what bounds the choice of rungs; the rest has no effect.
  package var configuration: PoolConfiguration
  /// Its rate and its round-trip time, with jitter; the model of connections has no effect.
  package var link: LinkSpec

  /// - Parameter chunks: Of the feed's items. Items without chunks fail.
  package init(
    _ feed: Feed, chunks: FeedChunks, plan: WalkPlan, settings: WalkSettings, label: String,
    configuration: PoolConfiguration, link: LinkSpec
  ) {
    self.feed = feed
    self.chunks = chunks
    self.plan = plan
    self.settings = settings
    self.label = label
    self.configuration = configuration
    self.link = link
  }

  /// Walks. A walk of 1,000 s takes 5 to 50 ms, most of them in the policy.
  package func run() -> WalkReport {
    var simulation = ChunkSimulation(self)
    simulation.run()
    var settings = settings
    settings.isVirtual = true
    settings.isChunkLevel = true
    settings.decodeCost = nil
    settings.decodesFirstFramesOnly = false
    settings.device = nil
    var report = simulation.report
    report.label = label
    report.settings = settings
    return report
  }

  /// Walks side by side.
  ///
  /// - Parameters:
  ///   - walks: The walks.
  ///   - note: Called with the place of each walk that has ended, and its report. One call at a time.
  /// - Throws: `CancellationError` if the task is cancelled.
  package static func run(_ walks: [ChunkWalk], note: (Int, WalkReport) -> Void) async throws {
    try await withThrowingTaskGroup(of: (Int, WalkReport).self) { group in
      var waiting = walks.enumerated().makeIterator()
      func begin() {
        guard let (place, walk) = waiting.next() else { return }
        group.addTask {
          try Task.checkCancellation()
          return (place, walk.run())
        }
      }
      for _ in 0..<ProcessInfo.processInfo.activeProcessorCount { begin() }
      while let (place, report) = try await group.next() {
        note(place, report)
        begin()
      }
    }
  }
}
