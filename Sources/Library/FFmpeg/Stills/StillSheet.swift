package import ReelCore

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

/// An upright image with square pixels, ready to be encoded.
package struct Still: Sendable {
  /// Rows from top to bottom without padding, in the order red, green, blue.
  package enum Pixels: Sendable {
    case eightBit([UInt8])
    case sixteenBit([UInt16])
  }

  /// The meaning of the pixels: code points of ISO/IEC 23091-2.
  package enum Color: Sendable, Hashable {
    /// The primaries of BT.709 and the transfer function of sRGB. The R'G'B' of SDR video is taken for it unchanged, as
    /// players show it.
    case sRGB
    /// BT.2020 with PQ (SMPTE ST 2084).
    case pq
    /// BT.2020 with HLG.
    case hlg

    /// Primaries, transfer characteristics, and the matrix for Y'CbCr.
    var codePoints: (primaries: UInt8, transfer: UInt8, matrix: UInt8) {
      switch self {
      case .sRGB: (1, 13, 6)
      case .pq: (9, 16, 9)
      case .hlg: (9, 18, 9)
      }
    }
  }

  package let size: PixelSize
  package let pixels: Pixels
  package let color: Color

  package init(size: PixelSize, pixels: Pixels, color: Color) {
    self.size = size
    self.pixels = pixels
    self.color = color
  }
}

/// A limit for the size of a still, which keeps its aspect ratio and is never enlarged.
package enum StillSize: Sendable, Hashable {
  /// At most so wide and so high.
  case box(PixelSize)
  /// At most so wide.
  case width(Int)
  /// The shorter side at most so long, as in 720p.
  case shortSide(Int)

  /// The largest size of an image that is not larger than the limit and than its natural size.
  package func fitted(_ natural: PixelSize) -> PixelSize {
    let factor = min(1, scale(of: natural))
    return PixelSize(
      width: max(1, Int((Double(natural.width) * factor).rounded())),
      height: max(1, Int((Double(natural.height) * factor).rounded())))
  }

  /// True if an image of this size need not be enlarged to reach the limit.
  package func isReached(by size: PixelSize) -> Bool { scale(of: size) <= 1 }

  /// What an image would be scaled by to reach the limit.
  private func scale(of size: PixelSize) -> Double {
    let (width, height) = (Double(max(1, size.width)), Double(max(1, size.height)))
    switch self {
    case .box(let box): return min(Double(box.width) / width, Double(box.height) / height)
    case .width(let limit): return Double(limit) / width
    case .shortSide(let limit): return Double(limit) / min(width, height)
    }
  }
}
