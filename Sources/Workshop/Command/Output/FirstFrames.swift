import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelPool

/// The first frames of the items that a walk has shown, for its page.
final class FirstFrames: Sendable {
  /// The size into which a frame is fitted.
  static let box = PixelSize(width: 120, height: 160)
  /// Frames of more items are left out.
  static let limit = 120

  private let indices: [FeedItem.ID: Int]
  private let images = Locked<[Int: RGBImage]>([:])

  init(_ feed: Feed) {
    var indices: [FeedItem.ID: Int] = [:]
    for (index, item) in feed.items.enumerated() { indices[item.id] = index }
    self.indices = indices
  }

  /// The images by the index of their item.
  var all: [Int: RGBImage] { images.withLock { $0 } }

  /// Keeps a frame with its own aspect ratio, HDR as SDR. One that can't be converted is left out.
  func add(_ frame: borrowing TimedFrame, of item: FeedItem) {
    guard let index = indices[item.id], images.withLock({ $0.count < Self.limit && $0[index] == nil }) else {
      return
    }
    let natural = frame.geometry().output
    let scale = min(
      Double(Self.box.width) / Double(max(natural.width, 1)),
      Double(Self.box.height) / Double(max(natural.height, 1)))
    let size = PixelSize(
      width: max(1, Int((Double(natural.width) * scale).rounded())),
      height: max(1, Int((Double(natural.height) * scale).rounded())))
    var image = RGBImage.empty
    do {
      try StillRenderer().convert(
        frame.decoded, geometry: frame.geometry(target: size, gravity: .resize),
        orientation: frame.orientation, into: &image)
    } catch { return }
    let converted = image
    images.withLock { $0[index] = converted }
  }
}
