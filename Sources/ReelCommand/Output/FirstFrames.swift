import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelPool

/// The first frames of the items that a walk has shown, for a contact sheet or a page.
final class FirstFrames: Sendable {
  /// The size into which a frame is fitted.
  static let box = PixelSize(width: 240, height: 320)
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

extension RGBImage {
  /// The image at half its size: each pixel is the mean of four.
  var halved: RGBImage {
    let (width, height) = (size.width / 2, size.height / 2)
    guard width > 0, height > 0 else { return self }
    var smaller = [UInt8](repeating: 0, count: width * height * 3)
    let row = size.width * 3
    for y in 0..<height {
      for x in 0..<width {
        for channel in 0..<3 {
          let place = y * 2 * row + x * 6 + channel
          let sum =
            Int(pixels[place]) + Int(pixels[place + 3]) + Int(pixels[place + row])
            + Int(pixels[place + row + 3])
          smaller[(y * width + x) * 3 + channel] = UInt8((sum + 2) / 4)
        }
      }
    }
    return RGBImage(size: PixelSize(width: width, height: height), pixels: smaller)
  }
}
