internal import ReelCore
package import ReelPlayback
package import ReelPool

/// Preloads a number of items in the direction of travel, and none behind: the first frame and 3 s of media
/// each.
package struct AheadPreload: PreloadPolicy, Hashable {
  /// The number of items to preload, not negative.
  package let count: Int
  /// True to keep the decoder of the next item in the direction of travel open. Defaults to false.
  ///
  /// At 720x1280 an open decoder takes about 10 MB. It shortens the time to the second frame by about 25 ms, which is
  /// gained anyway if the end of the drag is reported (`SwipePhase.dragEnded`).
  package var isNextDecoderWarm: Bool

  /// The policy `ahead:COUNT`.
  ///
  /// - Parameters:
  ///   - count: The number of items to preload. A negative number counts as 0.
  ///   - isNextDecoderWarm: The value of ``isNextDecoderWarm``.
  package init(_ count: Int, isNextDecoderWarm: Bool = false) {
    self.count = max(count, 0)
    self.isNextDecoderWarm = isNextDecoderWarm
  }

  package func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
    let ahead = context.direction < 0 ? -distance : distance
    guard ahead >= 1, ahead <= count else { return .notLoaded }
    return PreloadTarget(stage: .buffered, isDecoderWarm: isNextDecoderWarm && ahead == 1)
  }

  package var description: String { "ahead:\(count)" }
}

/// Preloads by distance, like the short-form demo of AndroidX Media3 1.11 (`demos/shortform` in [the
/// repository](https://github.com/androidx/media)): 1 s of each of the three items on each side, and with a cache 5 s on disk
/// of those further away.
///
/// *Loaded for a duration* of its `TargetPreloadStatusControl` is `.buffered` with this duration. Reel also decodes the
/// first frame, which Media3 does not.
///
/// Left out:
/// - The number of items on disk: the demo has 20 around the current one, and a pool's plan at most 8 heads.
/// - The demo's `LoadControl`, which lets the current item load 20 s ahead. In Reel, the item's preference applies.
/// - Loading for playback and preloading at the same time: in Reel, the current item goes first.
/// - At equal distance Media3 states no order. Reel loads the item in the direction of travel first.
package struct Media3Preload: PreloadPolicy, Hashable {
  package init() {}

  package func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
    (1...3).contains(abs(distance))
      ? PreloadTarget(stage: .buffered, bufferDuration: .seconds(1))
      : PreloadTarget(stage: .onDisk, bufferDuration: .seconds(5))
  }

  package var description: String { "media3" }
}

/// A policy that preloads another amount of media of each item.
struct DepthPreload: PreloadPolicy {
  private static let limit = 3600.0

  private let base: any PreloadPolicy
  private let depth: Duration
  let description: String

  /// - Parameters:
  ///   - time: The time with its unit; with 0, only first frames are loaded.
  ///   - text: The whole policy, for the error.
  /// - Throws: `ReelError` of kind `usage` for another time.
  init(_ base: any PreloadPolicy, _ time: Substring, in text: String) throws(ReelError) {
    guard let seconds = TimeText.seconds(time, needsUnit: true), (0...Self.limit).contains(seconds) else {
      throw ReelError(
        .usage, "\"\(text)\": the media of each item must be a time with a unit, at most an hour",
        advice: "write ahead:2,1s or adjacent:1s")
    }
    (self.base, depth) = (base, .microseconds(Int64((seconds * 1e6).rounded())))
    description = base.description + (base.description.contains(":") ? "," : ":") + time.trimmed.lowercased()
  }

  func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
    var target = base.target(at: distance, in: context)
    guard target.stage == .buffered else { return target }
    if depth == .zero { target.stage = .firstFrame } else { target.bufferDuration = depth }
    return target
  }
}
