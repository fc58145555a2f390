package import ReelCore
package import ReelFFmpeg

/// A sheet of tiles in 8-bit sRGB, row by row from the upper left corner. Places without a tile are black.
package struct StillSheet: Sendable {
  package let tile: PixelSize
  package let columns: Int
  package let rows: Int
  private var pixels: [UInt8]

  package init(tile: PixelSize, columns: Int, rows: Int) {
    (self.tile, self.columns, self.rows) = (tile, columns, rows)
    pixels = [UInt8](repeating: 0, count: tile.width * columns * tile.height * rows * 3)
  }

  package var size: PixelSize { PixelSize(width: tile.width * columns, height: tile.height * rows) }
  package var still: Still { Still(size: size, pixels: .eightBit(pixels), color: .sRGB) }

  /// The upper left corner of a tile in pixels.
  package func origin(of index: Int) -> (x: Int, y: Int) {
    (index % columns * tile.width, index / columns * tile.height)
  }

  /// - Parameter index: Must be less than `columns * rows`.
  /// - Throws: `ReelError.internalFault` for a still of another size or with 16-bit pixels.
  package mutating func place(_ still: Still, at index: Int) throws(ReelError) {
    guard still.size == tile, case .eightBit(let source) = still.pixels, (0..<columns * rows).contains(index)
    else { throw ReelError(.internalFault, "a tile that does not fit its sheet") }
    let (x, y) = origin(of: index)
    let (row, stride) = (tile.width * 3, size.width * 3)
    for line in 0..<tile.height {
      let start = (y + line) * stride + x * 3
      pixels.replaceSubrange(start..<(start + row), with: source[(line * row)..<((line + 1) * row)])
    }
  }
}
