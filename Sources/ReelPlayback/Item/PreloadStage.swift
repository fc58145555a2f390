/// How far the loading of an item has come, or is to come. Each stage includes those before it.
public enum PreloadStage: Int, Sendable, Hashable, Comparable, CaseIterable {
  case none
  /// The manifest was read, or the kind of a media file is known.
  case manifest
  /// The container's header was read: its streams are known.
  case initialization
  /// The first frame is decoded and in the ring.
  case firstFrame
  /// `preferredForwardBufferDuration` of compressed media is there, or all of a shorter item.
  case buffered

  public static func < (left: PreloadStage, right: PreloadStage) -> Bool { left.rawValue < right.rawValue }
}
