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

/// Preloads the previous and the next item up to a number of bytes of media each, regardless of their duration.
package struct BytesPreload: PreloadPolicy, Hashable {
  /// The number of bytes of compressed media in one unit of `count`: 800,000.
  package static let unit = 800_000
  /// The maximum duration of media that is too small to reach the byte limit: 60 s.
  package static let maximumDuration = Duration.seconds(60)

  /// The limit of each neighbour in units of 800 kB, not negative. With 0 nothing is preloaded.
  package let count: Int

  /// The policy `bytes:COUNT`.
  ///
  /// - Parameter count: The limit in units of 800 kB. A negative number counts as 0.
  package init(_ count: Int) {
    self.count = max(count, 0)
  }

  package func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
    guard abs(distance) == 1, count > 0 else { return .notLoaded }
    let (limit, overflow) = count.multipliedReportingOverflow(by: Self.unit)
    return PreloadTarget(
      stage: .buffered, bufferDuration: Self.maximumDuration, byteLimit: overflow ? .max : limit)
  }

  package var description: String { "bytes:\(count)" }
}

/// Preloads by distance, like the examples of `DefaultPreloadManager` in AndroidX Media3.
///
/// A `TargetPreloadStatusControl` returns a target for each item by its distance from the current one, and
/// the preload manager loads the items one after the other, the nearest first. There are three examples, from
/// Media3 1.11:
///
/// | distance | ``Example/demo`` | ``Example/compose`` | ``Example/guide`` |
/// |---|---|---|---|
/// | 1 | 1 s loaded | 3 s loaded | 3 s loaded |
/// | 2 | 1 s loaded | 1 s loaded | tracks selected |
/// | 3 | 1 s loaded | 5 s on disk | source prepared |
/// | 4 | 5 s on disk | 5 s on disk | source prepared |
///
/// The demos are `demos/shortform` and the short-form screen of the Compose demo in [the
/// repository](https://github.com/androidx/media). The guide is [Create a preload
/// manager](https://developer.android.com/media/media3/exoplayer/preloading-media/preloadmanager/create).
///
/// Media3's stages correspond to Reel's as follows:
/// - *Loaded for a duration* is `.buffered` with this duration. Reel also decodes the first frame, which
///   Media3 does not.
/// - *Tracks selected* is `.initialization`: the container's header has been read.
/// - *Source prepared* is `.manifest`.
///
/// Left out:
/// - The media that the demos put on disk, 5 s of each item further away. Reel's pool keeps media in memory
///   only.
/// - The demo's `LoadControl`, which lets the current item load 20 s ahead. In Reel, the item's preference applies.
/// - Loading for playback and preloading at the same time: in Reel, the current item goes first.
/// - At equal distance Media3 states no order. Reel loads the item in the direction of travel first.
package struct Media3Preload: PreloadPolicy, Hashable {
  /// One of Media3's examples.
  package enum Example: String, Sendable, Hashable {
    /// The short-form demo.
    case demo
    /// The short-form screen of the Compose demo.
    case compose
    /// The guide to the preload manager.
    case guide
  }

  /// The example to follow.
  package var example: Example

  /// The policy `media3`, `media3:compose` or `media3:guide`.
  package init(_ example: Example = .demo) { self.example = example }

  package func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
    switch (example, abs(distance)) {
    case (.demo, 1...3), (.compose, 2): PreloadTarget(stage: .buffered, bufferDuration: .seconds(1))
    case (.compose, 1), (.guide, 1): PreloadTarget(stage: .buffered, bufferDuration: .seconds(3))
    case (.guide, 2): PreloadTarget(stage: .initialization)
    case (.guide, 3), (.guide, 4): PreloadTarget(stage: .manifest)
    default: .notLoaded
    }
  }

  package var description: String { example == .demo ? "media3" : "media3:\(example.rawValue)" }
}
