import ReelCore
import ReelFFmpeg
import ReelPlayback

/// Pictures side by side in one.
final class ContactSheet: Sendable {
  /// Of one picture, which is fitted into it.
  private static let tile = PixelSize(width: 160, height: 160)
  private static let gap = 8
  private static let columnLimit = 6
  private static let tileLimit = 120

  private let tiles = Locked<[RGBImage]>([])

  /// One that can't be converted is left out; so are those beyond the limit.
  func add(_ picture: borrowing TimedPicture) {
    guard tiles.withLock({ $0.count < Self.tileLimit }) else { return }
    var image = RGBImage.empty
    do {
      try FrameConverter().convert(
        picture.frame, geometry: picture.geometry(target: Self.tile, gravity: .resizeAspect),
        orientation: picture.orientation, into: &image)
    } catch { return }
    tiles.withLock { $0.append(image) }
  }

  /// Throws `ReelError` where there is no picture, or the file can't be written.
  func write(to path: String) throws(ReelError) {
    let tiles = tiles.withLock { $0 }
    guard !tiles.isEmpty else { throw ReelError(.badMedia, "no item has shown a picture", at: path) }
    let columns = min(tiles.count, Self.columnLimit)
    let rows = (tiles.count + columns - 1) / columns
    let (tile, gap) = (Self.tile, Self.gap)
    let size = PixelSize(
      width: columns * (tile.width + gap) + gap, height: rows * (tile.height + gap) + gap)
    var pixels = [UInt8](repeating: 32, count: size.width * size.height * 3)
    for (number, image) in tiles.enumerated() {
      let left = gap + number % columns * (tile.width + gap)
      let top = gap + number / columns * (tile.height + gap)
      for row in 0..<image.size.height {
        let target = ((top + row) * size.width + left) * 3
        let source = row * image.size.width * 3
        pixels.replaceSubrange(
          target..<target + image.size.width * 3, with: image.pixels[source..<source + image.size.width * 3])
      }
    }
    let file = try OutputFile(path: path)
    try file.write(try PNGEncoder.encode(RGBImage(size: size, pixels: pixels)))
    try file.commit()
  }
}
