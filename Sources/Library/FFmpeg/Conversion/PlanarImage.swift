internal import CFFmpeg
package import ReelCore

/// The samples of a decoded frame, upright, plane by plane without padding, in no other colour than decoded.
package struct PlanarImage: Sendable {
  /// How the chroma planes relate to the luma plane.
  package enum Chroma: Sendable, Hashable {
    case none
    case c420(Location)
    case c422
    case c444

    /// The position of chroma samples (ISO/IEC 23091-2 §8.7).
    package enum Location: Sendable, Hashable {
      case left
      case topLeft
      case other
    }
  }

  /// Of the luma plane, in samples.
  package let size: PixelSize
  package let chroma: Chroma
  /// 8, or 9 to 16 in little-endian samples of two bytes.
  package let bitDepth: Int
  package let isFullRange: Bool
  /// Y, Cb, Cr; or Y alone.
  package let planes: [[UInt8]]

  /// Throws `ReelError.unsupported` for frames that are not planar YUV, and for a quarter turn of 4:2:2.
  package init(_ frame: borrowing Frame, orientation: Orientation) throws(ReelError) {
    guard let descriptor = av_pix_fmt_desc_get(frame.format)?.pointee else {
      throw ReelError(.unsupported, "the pixel format of the frames is unknown")
    }
    let flags = Int32(truncatingIfNeeded: descriptor.flags)
    let isPlain =
      flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_ALPHA | AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BE) == 0
      && frame.planeCount == Int(descriptor.nb_components)
    guard isPlain, descriptor.nb_components == 1 || descriptor.nb_components == 3 else {
      throw ReelError(.unsupported, "frames of \(frame.pixelFormat) are not planar YUV")
    }
    switch (descriptor.nb_components, descriptor.log2_chroma_w, descriptor.log2_chroma_h) {
    case (1, _, _): chroma = .none
    case (_, 1, 1):
      switch frame.pointer.pointee.chroma_location {
      case AVCHROMA_LOC_LEFT: chroma = .c420(.left)
      case AVCHROMA_LOC_TOPLEFT: chroma = .c420(.topLeft)
      default: chroma = .c420(.other)
      }
    case (_, 1, 0) where !orientation.swapsAxes: chroma = .c422
    case (_, 0, 0): chroma = .c444
    default:
      throw ReelError(.unsupported, "frames of \(frame.pixelFormat) can't be rotated without conversion")
    }
    bitDepth = Int(descriptor.comp.0.depth)
    isFullRange = frame.color.isFullRange
    size = orientation.swapsAxes ? frame.size.transposed : frame.size
    let sampleBytes = bitDepth > 8 ? 2 : 1
    var planes: [[UInt8]] = []
    for index in 0..<frame.planeCount {
      let plane = frame.withPlane(index) { base, rows, bytesPerRow, stride in
        orientation.apply(
          to: base, stored: PixelSize(width: bytesPerRow / sampleBytes, height: rows), stride: stride,
          pixelBytes: sampleBytes)
      }
      planes.append(plane ?? [])
    }
    self.planes = planes
  }
}

extension Orientation {
  /// The offset of the stored pixel that is shown at `x`, `y` of the upright frame.
  func storedOffset(x: Int, y: Int, stored: PixelSize, stride: Int, pixelBytes: Int) -> Int {
    var (column, row) =
      switch rotation {
      case 90: (y, stored.height - 1 - x)
      case 180: (stored.width - 1 - x, stored.height - 1 - y)
      case 270: (stored.width - 1 - y, x)
      default: (x, y)
      }
    if isMirrored { column = stored.width - 1 - column }
    return row * stride + column * pixelBytes
  }

  /// The rows of a stored plane, upright and without padding.
  func apply(to base: UnsafeRawPointer, stored: PixelSize, stride: Int, pixelBytes: Int) -> [UInt8] {
    let upright = swapsAxes ? stored.transposed : stored
    let source = base.assumingMemoryBound(to: UInt8.self)
    let rowBytes = upright.width * pixelBytes
    return [UInt8](unsafeUninitializedCapacity: rowBytes * upright.height) { buffer, initialized in
      guard var target = buffer.baseAddress else { return }
      initialized = rowBytes * upright.height
      for y in 0..<upright.height {
        let first = storedOffset(x: 0, y: y, stored: stored, stride: stride, pixelBytes: pixelBytes)
        let step = storedOffset(x: 1, y: y, stored: stored, stride: stride, pixelBytes: pixelBytes) - first
        if step == pixelBytes {
          target.update(from: source + first, count: rowBytes)
          target += rowBytes
        } else {
          for x in 0..<upright.width {
            for byte in 0..<pixelBytes { target[byte] = source[first + x * step + byte] }
            target += pixelBytes
          }
        }
      }
    }
  }
}
