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

  /// A tile with a shorter side is no still.
  private static let leastSide = 8
  /// How much the shape of tiles may differ from the one that a manifest states, which may be that of the video with bars.
  private static let mostStretch = 1.4

  /// - Parameters:
  ///   - expected: The size of the tiles of other images, or as the manifest states it; nil if it is not known.
  ///   - neededCount: The number of tiles before the end of the presentation.
  /// - Throws: `ReelError.badMedia` if the layout does not fit the image.
  init(
    _ image: PixelSize, _ tiles: ImageTiles, expected: PixelSize?, neededCount: Int
  ) throws(ReelError) {
    var (columns, rows) = (tiles.columns, tiles.rows)
    let found = expected.flatMap { Self.grid(of: $0, in: image) }
    if neededCount < tiles.count, let found, found.columns <= columns, found.rows <= rows,
      found.columns * found.rows >= neededCount
    {
      // The last image may lack the rows and columns that it does not need.
      (columns, rows) = found
    }
    (self.columns, self.rows) = (columns, rows)
    let whole = PixelSize(width: image.width / columns, height: image.height / rows)
    guard min(whole.width, whole.height) >= Self.leastSide else {
      throw ReelError(.badMedia, "an image of \(image) can't hold \(tiles.columns)x\(tiles.rows) tiles")
    }
    if let expected,
      !Self.isLike(whole, expected, tiles, isDivided: found.map { $0 != (columns, rows) } ?? false)
    {
      throw ReelError(
        .badMedia,
        "an image of \(image) does not hold \(tiles.columns)x\(tiles.rows) tiles of about \(expected) pixels")
    }
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

  // MARK: - Private

  /// The columns and rows of tiles of this size in an image; nil if it is not made of them.
  private static func grid(of tile: PixelSize, in image: PixelSize) -> (columns: Int, rows: Int)? {
    let (columns, rows) = (image.width / tile.width, image.height / tile.height)
    // Up to a pixel of each tile may have been lost in rounding.
    guard columns > 0, rows > 0, image.width % tile.width < columns, image.height % tile.height < rows else {
      return nil
    }
    return (columns, rows)
  }

  /// False if the shape of tiles shows that they are not divided as the manifest says. Their size may be another one.
  ///
  /// - Parameter isDivided: The image can be divided into tiles of the stated size in another way.
  private static func isLike(
    _ tile: PixelSize, _ stated: PixelSize, _ tiles: ImageTiles, isDivided: Bool
  ) -> Bool {
    func inverse(_ size: PixelSize) -> Double { 1 / Double(size.width) + 1 / Double(size.height) }
    let ratio =
      Double(tile.width) / Double(tile.height) * (Double(stated.height) / Double(stated.width))
    let stretch = max(ratio, 1 / ratio)
    if stretch <= 1 + 1.5 * (inverse(tile) + inverse(stated)) { return true }
    // An MPD may state the size of a tile in place of the image's.
    let (width, height) = (stated.width * tiles.columns, stated.height * tiles.rows)
    if abs(tile.width - width) <= tiles.columns, abs(tile.height - height) <= tiles.rows { return true }
    return !isDivided && stretch <= mostStretch
  }
}
