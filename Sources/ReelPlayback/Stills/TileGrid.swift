internal import ReelCore
internal import ReelManifest

/// Where the tiles of an image are. The layout comes from the manifest, the sizes from the image itself.
struct TileGrid: Sendable {
  /// The size of each tile.
  let tile: PixelSize
  private let columns: Int
  private let rows: Int
  /// From one tile to the next, in pixels.
  private let step: (x: Double, y: Double)

  /// Nil if the image has fewer pixels than tiles.
  ///
  /// - Parameters:
  ///   - expected: The size of the tiles of other images, or as the manifest states it; nil if it is not known.
  ///   - neededCount: The number of tiles before the end of the presentation.
  init?(_ image: PixelSize, _ tiles: ImageTiles, expected: PixelSize?, neededCount: Int) {
    guard image.width >= tiles.columns, image.height >= tiles.rows else { return nil }
    var (columns, rows) = (tiles.columns, tiles.rows)
    if neededCount < tiles.count, let expected, image.width % expected.width == 0,
      image.height % expected.height == 0
    {
      // The last image may lack the rows and columns that it does not need.
      let (found, lines) = (image.width / expected.width, image.height / expected.height)
      if found <= columns, lines <= rows, found * lines >= neededCount { (columns, rows) = (found, lines) }
    }
    (self.columns, self.rows) = (columns, rows)
    let whole = PixelSize(width: image.width / columns, height: image.height / rows)
    if let stated = tiles.size, stated == whole {
      // The rest is padding.
      step = (Double(whole.width), Double(whole.height))
    } else {
      step = (Double(image.width) / Double(columns), Double(image.height) / Double(rows))
    }
    tile = whole
  }

  /// The upper left corner of a tile; nil if the image does not have it.
  func origin(of index: Int) -> (x: Int, y: Int)? {
    guard (0..<columns * rows).contains(index) else { return nil }
    return (Int(Double(index % columns) * step.x), Int(Double(index / columns) * step.y))
  }
}
