public import ReelCore

/// One quality of an item, as its manifest states it.
public struct ItemRung: Sendable, Hashable {
  /// The rung's id, as in ``PlayerItem/rung``.
  public var id: String
  /// The peak bit rate, in bits per second; the average one if no peak is stated, and 0 if none is.
  public var bitRate: Int
  /// The size of frames as stored; nil if not stated.
  public var size: PixelSize?

  /// Creates a rung.
  public init(id: String, bitRate: Int, size: PixelSize? = nil) {
    self.id = id
    self.bitRate = bitRate
    self.size = size
  }
}

/// The qualities of an item's video, and how its media is divided.
package struct ItemLadder: Sendable, Hashable {
  /// In rising order of bit rate. Empty before the manifest was read, and for a media file.
  package var rungs: [ItemRung] = []
  /// The duration of the segment that was opened last; nil before the first, and for a media file.
  package var segmentDuration: Duration?
}
