public import ReelPlayback

/// Preloads by distance, as the examples of `DefaultPreloadManager` in AndroidX Media3 do.
///
/// A `TargetPreloadStatusControl` answers for each item by its distance from the current one, and the preload manager
/// loads the items one after the other, the nearest first. There are three examples, of Media3 1.11:
///
/// | distance | ``Example/demo`` | ``Example/compose`` | ``Example/guide`` |
/// |---|---|---|---|
/// | 1 | 1 s loaded | 3 s loaded | 3 s loaded |
/// | 2 | 1 s loaded | 1 s loaded | tracks selected |
/// | 3 | 1 s loaded | 5 s on disk | source prepared |
/// | 4 | 5 s on disk | 5 s on disk | source prepared |
///
/// The demos are `demos/shortform` and the short-form screen of the Compose demo in
/// [the repository](https://github.com/androidx/media). The guide is [Create a preload manager](https://developer.android.com/media/media3/exoplayer/preloading-media/preloadmanager/create).
///
/// Media3's stages are Reel's as follows:
/// - *Loaded for a duration* is `.buffered` with this duration. Reel also decodes the first frame, which Media3 does not.
/// - *Tracks selected* is `.initialization`: the container's header has been read.
/// - *Source prepared* is `.manifest`.
///
/// Left out:
/// - What the demos put on disk, 5 s of each item further away. Reel's pool keeps media in memory only.
/// - The demo's `LoadControl`, which lets the current item load 20 s ahead. In Reel, the item's preference applies.
/// - Loading for playback and preloading at the same time: in Reel, the current item goes first.
/// - At equal distance Media3 states no order. Reel loads the item in the direction of travel first.
public struct Media3Preload: PreloadPolicy, Hashable {
  /// One of Media3's examples.
  public enum Example: String, Sendable, Hashable {
    /// The short-form demo.
    case demo
    /// The short-form screen of the Compose demo.
    case compose
    /// The guide to the preload manager.
    case guide
  }

  /// The example to follow.
  public var example: Example

  /// The policy `media3`, `media3:compose` or `media3:guide`.
  public init(_ example: Example = .demo) { self.example = example }

  public func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
    switch (example, abs(distance)) {
    case (.demo, 1...3), (.compose, 2): PreloadTarget(stage: .buffered, bufferDuration: .seconds(1))
    case (.compose, 1), (.guide, 1): PreloadTarget(stage: .buffered, bufferDuration: .seconds(3))
    case (.guide, 2): PreloadTarget(stage: .initialization)
    case (.guide, 3), (.guide, 4): PreloadTarget(stage: .manifest)
    default: .none
    }
  }

  public var description: String { example == .demo ? "media3" : "media3:\(example.rawValue)" }
}
