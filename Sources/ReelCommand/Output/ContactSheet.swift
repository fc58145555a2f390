import ReelCore
import ReelFFmpeg
import ReelPlayback

/// Frames side by side in one: the file that `--contact-sheet` writes.
final class ContactSheet: Sendable {
  private struct State: ~Copyable {
    let file: OutputFile
    var tiles: [RGBImage] = []
  }

  private let state: Locked<State>

  /// Of one frame, which is fitted into it.
  private static let tile = PixelSize(width: 160, height: 160)
  private static let gap = 8
  private static let columnLimit = 6
  private static let tileLimit = 120

  /// Nobody else may use `file`.
  init(_ file: sending OutputFile) { state = Locked(State(file: file), rank: .writer) }

  /// One that can't be converted is left out; so are those beyond the limit.
  func add(_ frame: borrowing TimedFrame) {
    guard state.withLock({ $0.tiles.count < Self.tileLimit }) else { return }
    var image = RGBImage.empty
    do {
      try FrameConverter().convert(
        frame.decoded, geometry: frame.geometry(target: Self.tile, gravity: .resizeAspect),
        orientation: frame.orientation, into: &image)
    } catch { return }
    state.withLock { $0.tiles.append(image) }
  }

  /// Throws `ReelError` where there is no frame, or the file can't be written.
  func commit() throws(ReelError) {
    let failure = state.withLock { state -> ReelError? in
      do throws(ReelError) {
        guard !state.tiles.isEmpty else {
          throw ReelError(.badMedia, "no item has shown a frame", at: state.file.path)
        }
        try state.file.write(try PNGEncoder.encode(Self.sheet(of: state.tiles)))
        try state.file.commit()
      } catch { return error }
      return nil
    }
    if let failure { throw failure }
  }

  // MARK: - Private

  private static func sheet(of tiles: [RGBImage]) -> RGBImage {
    let columns = min(tiles.count, columnLimit)
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
    return RGBImage(size: size, pixels: pixels)
  }
}
