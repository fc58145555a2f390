/// A stage of loading that an item has reached or shall reach. Each stage includes those before it.
public enum PreloadStage: Int, Sendable, Hashable, Comparable, CaseIterable {
  /// Nothing is loaded.
  case notLoaded
  /// A cache has the item's head: the first seconds of media, and what a start requests before them, except keys. Its server
  /// may have to confirm them. This needs no player and no memory. A player by itself loads nothing for it.
  case onDisk
  /// The manifest was read, or the format of a media file is known.
  case manifest
  /// The container's header and its first video packet were read. The streams of that container are known.
  case initialization
  /// The first frame is decoded and on show: ``Player/currentFrame()`` returns it.
  case firstFrame
  /// The forward buffer is full, in time or in bytes, or contains the rest of the item.
  case buffered

  /// The stages that a player reaches, in order.
  package static let ofPlayers: [PreloadStage] = [.manifest, .initialization, .firstFrame, .buffered]

  /// The name in texts, such as `first frame`.
  package var text: String {
    switch self {
    case .notLoaded: "not loaded"
    case .onDisk: "on disk"
    case .firstFrame: "first frame"
    default: String(describing: self)
    }
  }

  /// Returns true if the left stage comes before the right one.
  public static func < (left: PreloadStage, right: PreloadStage) -> Bool { left.rawValue < right.rawValue }
}

/// The extent to which a player loads an item before it is played.
///
/// A player with a target stops loading when it reaches the target. It then uses no thread, no running transfer, and no
/// decoder unless ``isDecoderWarm`` is true. Without a target it loads for playback.
public struct PreloadTarget: Sendable, Hashable {
  /// The stage to reach.
  public var stage: PreloadStage
  /// The compressed media to load ahead of the first frame, for the stage `.buffered`, or to keep from the item's start,
  /// for the stage `.onDisk`. 3 s by default.
  public var bufferDuration: Duration
  /// The number of bytes at which loading stops too, for the stages `.buffered` and `.onDisk`. If nil, 64 MiB.
  public var byteLimit: Int?
  /// Whether to keep the decoder open after the first frame, with the second frame decoded. This needs memory for the
  /// decoder's reference frames, but the key frame need not be decoded again when playback starts.
  public var isDecoderWarm: Bool
  /// The highest bit rate of a rung to load, in bits per second. If all rungs are above it, the lowest one is loaded.
  /// If nil, the item's preferences and the player choose.
  ///
  /// A change applies from the next segment on.
  public var peakBitRate: Int?
  /// The highest bit rate of the rung of the first segment, in bits per second. The rung of the second segment is
  /// chosen without it. If nil, there is no such limit.
  package var startPeakBitRate: Int?

  /// Creates a target.
  public init(
    stage: PreloadStage, bufferDuration: Duration = .seconds(3), byteLimit: Int? = nil,
    isDecoderWarm: Bool = false, peakBitRate: Int? = nil
  ) {
    self.stage = stage
    self.bufferDuration = bufferDuration
    self.byteLimit = byteLimit
    self.isDecoderWarm = isDecoderWarm
    self.peakBitRate = peakBitRate
  }

  /// Loads nothing.
  public static let notLoaded = PreloadTarget(stage: .notLoaded)
  /// Decodes the first frame, loads 3 s of compressed media, and closes the decoder.
  public static let buffered = PreloadTarget(stage: .buffered)

  /// Prepares for playback soon: like ``buffered``, but with an open decoder.
  public static let current = PreloadTarget(stage: .buffered, isDecoderWarm: true)

  /// The number of frames to decode.
  var frameLimit: Int {
    guard stage >= .firstFrame else { return 0 }
    return isDecoderWarm ? 2 : 1
  }
}

/// Limits on how much a player loads of an item that it plays.
///
/// A pool sets them for its current item, in addition to the item's own preferences
/// (``PlayerItem/Preferences``). Changes apply while the item loads, and nothing is fetched twice because of
/// them.
package struct LoadingBounds: Sendable, Hashable {
  /// The compressed media to load ahead of the frame on show. If nil, the item's preference applies.
  ///
  /// If it is shorter than ``BufferingThresholds/start``, playback starts with this much.
  package var forwardBufferDuration: Duration?
  /// The highest bit rate to choose, in bits per second. The lower one of this and the item's preference
  /// applies. If all rungs are above it, the lowest one plays. If nil, there is no such limit.
  package var peakBitRate: Int?
  /// The highest bit rate of the rung of the first segment, in bits per second. The rung of the second segment is
  /// chosen without it. If nil, there is no such limit.
  package var startPeakBitRate: Int?

  /// Creates bounds; by default, none.
  package init(
    forwardBufferDuration: Duration? = nil, peakBitRate: Int? = nil
  ) {
    self.forwardBufferDuration = forwardBufferDuration
    self.peakBitRate = peakBitRate
  }
}
