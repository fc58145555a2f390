internal import CFFmpeg
package import ReelCore

/// The luma of a frame at a small size, to measure it by.
package struct LumaPlane: Sendable {
  package let size: PixelSize
  /// Rows from top to bottom, from 0 for black to 1 for white. As coded: HDR is not tone mapped.
  package let samples: [Float]

  /// The longer side of a measured plane, in samples.
  private static let longSide = 320

  package init(size: PixelSize, samples: [Float]) {
    self.size = size
    self.samples = samples
  }

  /// Averages the luma of a frame. Frames without a luma plane are converted to RGB first.
  ///
  /// - Throws: `ReelError.unsupported` for a pixel format that can't be converted.
  package init(_ frame: borrowing Frame) throws(ReelError) {
    if let plane = Self.averaged(frame) {
      self = plane
      return
    }
    let size = Self.reduced(frame.size)
    let geometry = FrameGeometry(
      stored: frame.size, sampleAspectRatio: nil, orientation: .upright, target: size, gravity: .resize)
    let image = try FrameConverter().convert(frame, geometry: geometry, orientation: .upright)
    var samples = [Float](repeating: 0, count: size.width * size.height)
    for index in samples.indices {
      let (red, green, blue) = (
        Float(image.pixels[index * 3]), Float(image.pixels[index * 3 + 1]), Float(image.pixels[index * 3 + 2])
      )
      samples[index] = (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255
    }
    self.init(size: size, samples: samples)
  }

  // MARK: - Private

  private static func reduced(_ size: PixelSize) -> PixelSize {
    StillSize.box(PixelSize(width: longSide, height: longSide)).fitted(size)
  }

  /// Nil if the frame's first component is not luma in a plane of its own.
  private static func averaged(_ frame: borrowing Frame) -> LumaPlane? {
    guard let descriptor = av_pix_fmt_desc_get(frame.format)?.pointee else { return nil }
    let flags = Int32(truncatingIfNeeded: descriptor.flags)
    let (component, wide) = (descriptor.comp.0, descriptor.comp.0.depth > 8)
    guard
      flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BE | AV_PIX_FMT_FLAG_BITSTREAM)
        == 0,
      component.plane == 0, component.step == (wide ? 2 : 1), component.offset == 0
    else { return nil }
    let (stored, size) = (frame.size, reduced(frame.size))
    let isFullRange = frame.color.isFullRange
    // The value of black, and that of white, of samples as wide as they are.
    let unit = Float(1 << (Int(component.depth) - 8))
    let black: Float = isFullRange ? 0 : 16 * unit
    let span: Float = isFullRange ? Float(1 << Int(component.depth)) - 1 : 219 * unit
    let shift = Int(component.shift)
    var samples = [Float](repeating: 0, count: size.width * size.height)
    // The frame's columns that go into each column of the plane.
    let ends = (0..<size.width).map { ($0 + 1) * stored.width / size.width }
    // The shares of a sum in one row of a column that make it a mean of the range from black to white.
    let shares = zip(ends, [0] + ends).map { 1 / (Float(max(1, $0 - $1)) * span) }
    var sums = [UInt32](repeating: 0, count: stored.width)
    var totals = [Float](repeating: 0, count: size.width)
    let done: Bool? = frame.withPlane(0) { base, _, _, stride in
      for row in 0..<size.height {
        let rows = (row * stored.height / size.height)..<((row + 1) * stored.height / size.height)
        // Down the columns first: this the compiler does for many at a time.
        sums.withUnsafeMutableBufferPointer { sums in
          sums.update(repeating: 0)
          for y in rows {
            let line = base + y * stride
            if wide {
              add(line.assumingMemoryBound(to: UInt16.self), shiftedBy: UInt16(shift), to: sums)
            } else {
              add(line.assumingMemoryBound(to: UInt8.self), shiftedBy: 0, to: sums)
            }
          }
        }
        addUp(sums, upTo: ends, into: &totals)
        let (share, floor) = (1 / Float(max(1, rows.count)), black / span)
        samples.withUnsafeMutableBufferPointer { samples in
          let line = samples[(row * size.width)..<((row + 1) * size.width)]
          place(totals, times: shares, share, less: floor, in: UnsafeMutableBufferPointer(rebasing: line))
        }
      }
      return true
    }
    return done == true ? LumaPlane(size: size, samples: samples) : nil
  }

  private static func add<Sample: FixedWidthInteger & UnsignedInteger>(
    _ line: UnsafePointer<Sample>, shiftedBy shift: Sample, to sums: UnsafeMutableBufferPointer<UInt32>
  ) {
    for x in 0..<sums.count { sums[x] &+= UInt32(truncatingIfNeeded: line[x] &>> shift) }
  }

  /// Adds up neighbours.
  private static func addUp(_ sums: [UInt32], upTo ends: [Int], into totals: inout [Float]) {
    sums.withUnsafeBufferPointer { sums in
      totals.withUnsafeMutableBufferPointer { totals in
        var x = 0
        for column in 0..<totals.count {
          var total: UInt32 = 0
          while x < ends[column] {
            total &+= sums[x]
            x += 1
          }
          totals[column] = Float(total)
        }
      }
    }
  }

  private static func place(
    _ totals: [Float], times shares: [Float], _ share: Float, less floor: Float,
    in line: UnsafeMutableBufferPointer<Float>
  ) {
    totals.withUnsafeBufferPointer { totals in
      shares.withUnsafeBufferPointer { shares in
        for column in 0..<line.count {
          line[column] = min(max(totals[column] * shares[column] * share - floor, 0), 1)
        }
      }
    }
  }
}
