/// A stage of loading that an item has reached, or is to reach. Each stage includes those before it.
public enum PreloadStage: Int, Sendable, Hashable, Comparable, CaseIterable {
  /// Nothing is loaded.
  case none
  /// The manifest was read, or the format of a media file is known.
  case manifest
  /// The container's header and its first video packet were read. The streams of that container are known.
  case initialization
  /// The first frame is decoded and on show: ``Player/currentFrame()`` returns it.
  case firstFrame
  /// The forward buffer is full, in time or in bytes, or contains the rest of the item.
  case buffered

  /// True if the left stage comes before the right one.
  public static func < (left: PreloadStage, right: PreloadStage) -> Bool { left.rawValue < right.rawValue }
}
