internal import CFFmpeg
package import ReelCore

/// The luma of a frame at a small size, to measure it by.
package struct LumaPlane: Sendable {
  package let size: PixelSize
  /// The rows from top to bottom, from 0 for black to 1 for white. As coded: HDR is not tone mapped.
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
  package init(_ frame: Frame) throws(ReelError) {
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
    SizeLimit.square(longSide).fitted(size)
  }

  /// Returns nil if the frame's first component is not luma in a plane of its own.
  private static func averaged(_ frame: Frame) -> LumaPlane? {
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
    // The values of black and of white at the depth of the samples.
    let unit = Float(1 << (Int(component.depth) - 8))
    let black: Float = isFullRange ? 0 : 16 * unit
    let span: Float = isFullRange ? Float(1 << Int(component.depth)) - 1 : 219 * unit
    let grid = Grid(stored: stored, size: size, black: black, span: span)
    let samples = frame.withPlane(0) { base, _, _, stride in
      if wide {
        return grid.means(
          of: base.assumingMemoryBound(to: UInt16.self), stride: stride / 2,
          shiftedBy: UInt16(component.shift), sums: UInt32.self)
      }
      let base = base.assumingMemoryBound(to: UInt8.self)
      // Sixteen bits can hold the sum of 257 samples of eight bits, and twice as many of them fit in a
      // vector.
      return grid.mostRows <= 257
        ? grid.means(of: base, stride: stride, shiftedBy: 0, sums: UInt16.self)
        : grid.means(of: base, stride: stride, shiftedBy: 0, sums: UInt32.self)
    }
    return samples.map { LumaPlane(size: size, samples: $0) }
  }

  /// The mapping of a frame's samples to those of a small plane. Each sample belongs to one.
  private struct Grid {
    let stored: PixelSize
    let size: PixelSize
    /// The ends, in columns of the frame, of the columns of the plane.
    let ends: [Int]
    /// The factors by which a sum over one row of a column becomes a mean in the range from black to white.
    let shares: [Float]
    /// Black, as a share of that range.
    let floor: Float

    init(stored: PixelSize, size: PixelSize, black: Float, span: Float) {
      self.stored = stored
      self.size = size
      ends = (0..<size.width).map { ($0 + 1) * stored.width / size.width }
      shares = zip(ends, [0] + ends).map { 1 / (Float(max(1, $0 - $1)) * span) }
      floor = black / span
    }

    var mostRows: Int { stored.height / size.height + 1 }

    func rows(_ row: Int) -> Range<Int> {
      (row * stored.height / size.height)..<((row + 1) * stored.height / size.height)
    }

    /// Returns the means, row by row.
    ///
    /// - Parameter stride: The distance from one row to the next, in samples.
    func means<Sample: FixedWidthInteger & UnsignedInteger, Sum: FixedWidthInteger & UnsignedInteger>(
      of base: UnsafePointer<Sample>, stride: Int, shiftedBy shift: Sample, sums _: Sum.Type
    ) -> [Float] {
      let columns = stored.width.isMultiple(of: size.width) ? stored.width / size.width : 0
      var sums = [Sum](repeating: 0, count: stored.width)
      var totals = [Float](repeating: 0, count: size.width)
      return [Float](unsafeUninitializedCapacity: size.width * size.height) { means, count in
        sums.withUnsafeMutableBufferPointer { sums in
          totals.withUnsafeMutableBufferPointer { totals in
            for row in 0..<size.height {
              // Add up the columns first: the compiler vectorises that.
              sums.update(repeating: 0)
              let rows = rows(row)
              for y in rows {
                let line = base + y * stride
                for x in 0..<sums.count { sums[x] &+= Sum(truncatingIfNeeded: line[x] &>> shift) }
              }
              addUp(sums, columns, into: totals)
              place(totals, 1 / Float(max(1, rows.count)), in: means, from: row * size.width)
            }
          }
        }
        count = size.width * size.height
      }
    }

    /// Adds up neighbours. For common numbers of columns, it uses loops of a fixed length, which the compiler
    /// unrolls.
    private func addUp<Sum: FixedWidthInteger & UnsignedInteger>(
      _ sums: UnsafeMutableBufferPointer<Sum>, _ columns: Int, into totals: UnsafeMutableBufferPointer<Float>
    ) {
      switch columns {
      case 1: addUp(sums, each: 1, into: totals)
      case 2: addUp(sums, each: 2, into: totals)
      case 3: addUp(sums, each: 3, into: totals)
      case 4: addUp(sums, each: 4, into: totals)
      case 6: addUp(sums, each: 6, into: totals)
      default:
        ends.withUnsafeBufferPointer { ends in
          var x = 0
          for column in 0..<totals.count {
            var total: UInt32 = 0
            while x < ends[column] {
              total &+= UInt32(truncatingIfNeeded: sums[x])
              x &+= 1
            }
            totals[column] = Float(total)
          }
        }
      }
    }

    @inline(__always)
    private func addUp<Sum: FixedWidthInteger & UnsignedInteger>(
      _ sums: UnsafeMutableBufferPointer<Sum>, each columns: Int,
      into totals: UnsafeMutableBufferPointer<Float>
    ) {
      for column in 0..<totals.count {
        var total: UInt32 = 0
        for x in 0..<columns { total &+= UInt32(truncatingIfNeeded: sums[column &* columns &+ x]) }
        totals[column] = Float(total)
      }
    }

    private func place(
      _ totals: UnsafeMutableBufferPointer<Float>, _ share: Float,
      in means: UnsafeMutableBufferPointer<Float>,
      from start: Int
    ) {
      shares.withUnsafeBufferPointer { shares in
        for column in 0..<totals.count {
          let mean = totals[column] * shares[column] * share - floor
          means[start &+ column] = mean < 0 ? 0 : mean > 1 ? 1 : mean
        }
      }
    }
  }
}
