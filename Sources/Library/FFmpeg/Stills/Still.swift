package import ReelCore

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
