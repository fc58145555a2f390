internal import Foundation
internal import ReelCore
package import ReelFFmpeg

/// What the luma of a frame says about it as a poster.
///
/// All measures are of a `LumaPlane`, whose longer side has at most 320 samples, from 0 for black to 1 for white.
package struct StillMeasures: Sendable, Hashable {
  package let mean: Double
  package let deviation: Double
  /// The distance from the 2nd to the 98th percentile.
  package let contrast: Double
  /// The share of samples under 0.08.
  package let darkShare: Double
  /// The share of samples within a range of 0.06, where there are the most.
  package let uniformShare: Double
  /// The entropy of a histogram of 64 values, from 0 for one value to 1 for as much of each.
  package let entropy: Double
  /// The mean square of the Laplacian, over the variance: how much of the contrast is in fine detail.
  package let sharpness: Double

  /// Why a frame is no good poster.
  package enum Flaw: String, Sendable, Hashable, CaseIterable {
    /// The mean is under 0.05, or `darkShare` over 0.95.
    case black
    /// `uniformShare` is over 0.85, or `deviation` under 0.03.
    case uniform
    /// The `contrast` is under 0.25: a frame on its way to or from black or white.
    case faded
    /// The `sharpness` is under 0.003.
    case blurred
    /// The decoder missed a reference or concealed errors.
    case damaged
  }

  package init(_ plane: LumaPlane) {
    let samples = plane.samples
    let count = Double(max(1, samples.count))
    let (sum, squares, dark, histogram) = Self.statistics(samples)
    let mean = sum / count
    let variance = max(0, squares / count - mean * mean)
    self.mean = mean
    deviation = variance.squareRoot()
    darkShare = Double(dark) / count
    // 0.06 of the range is 16 of 256 values.
    var window = histogram[..<16].reduce(0, +)
    var fullest = window
    for end in 16..<256 {
      window += histogram[end] - histogram[end - 16]
      fullest = max(fullest, window)
    }
    uniformShare = Double(fullest) / count
    var entropy = 0.0
    for bin in 0..<64 {
      let share = Double(histogram[(bin * 4)..<(bin * 4 + 4)].reduce(0, +)) / count
      if share > 0 { entropy -= share * log2(share) }
    }
    self.entropy = entropy / 6
    contrast = Double(Self.percentile(0.98, histogram) - Self.percentile(0.02, histogram)) / 255
    sharpness = variance > 0 ? Self.laplacianEnergy(plane) / variance : 0
  }

  /// The flaws, of which a good poster has none.
  package var flaws: [Flaw] {
    var flaws: [Flaw] = []
    if mean < 0.05 || darkShare > 0.95 { flaws.append(.black) }
    if uniformShare > 0.85 || deviation < 0.03 { flaws.append(.uniform) }
    if contrast < 0.25 { flaws.append(.faded) }
    // What has no contrast has no sharpness either.
    if flaws.isEmpty, sharpness < 0.003 { flaws.append(.blurred) }
    return flaws
  }

  /// From 0 to 1, the higher the better: the mean of `entropy`, `contrast`, the sharpness up to 0.1 (as its square
  /// root), and how near the mean is to 0.45.
  package var score: Double {
    let detail = min(1, sharpness / 0.1).squareRoot()
    let brightness = max(0, 1 - abs(mean - 0.45) / 0.45)
    return (entropy + min(1, contrast) + detail + brightness) / 4
  }

  // MARK: - Private

  /// The sum of the samples and of their squares, the number under 0.08, and how many there are of each 255th.
  private static func statistics(
    _ samples: [Float]
  ) -> (sum: Double, squares: Double, dark: Int, histogram: [Int]) {
    // Four independent sums, because each addition waits for the one before.
    var (sums, squares) = (SIMD4<Double>(), SIMD4<Double>())
    var darkCounts = SIMD4<Int32>()
    var counts = [Int32](repeating: 0, count: 4 * 256)
    // The last four are filled up with zeros, which add nothing to the sums, and are subtracted from the counts.
    let padding = -samples.count & 3
    let padded = padding == 0 ? samples : samples + Array(repeating: 0, count: padding)
    padded.withUnsafeBytes { bytes in
      counts.withUnsafeMutableBufferPointer { counts in
        for at in stride(from: 0, to: bytes.count, by: MemoryLayout<SIMD4<Float>>.size) {
          let four = bytes.loadUnaligned(fromByteOffset: at, as: SIMD4<Float>.self)
          let wide = SIMD4<Double>(four)
          sums += wide
          squares += wide * wide
          darkCounts.replace(with: darkCounts &+ 1, where: four .< 0.08)
          // The last bits of a number of this size are its integer, rounded. A conversion would check each.
          let bins = unsafeBitCast(four * 255 + 0x1p23, to: SIMD4<UInt32>.self) & 255
          for lane in 0..<4 { counts[Int(bins[lane]) &* 4 &+ lane] &+= 1 }
        }
      }
    }
    var histogram = (0..<256).map { bin in counts[(bin * 4)..<(bin * 4 + 4)].reduce(0) { $0 + Int($1) } }
    histogram[0] -= padding
    return (sums.sum(), squares.sum(), Int(darkCounts.wrappedSum()) - padding, histogram)
  }

  /// The lowest value that this share of the samples does not exceed.
  private static func percentile(_ share: Double, _ histogram: [Int]) -> Int {
    let wanted = share * Double(histogram.reduce(0, +))
    var seen = 0
    for (value, count) in histogram.enumerated() {
      seen += count
      if Double(seen) >= wanted, seen > 0 { return value }
    }
    return histogram.count - 1
  }

  /// The mean square of the difference between each inner sample and its four neighbours' mean, times four.
  private static func laplacianEnergy(_ plane: LumaPlane) -> Double {
    let (width, height) = (plane.size.width, plane.size.height)
    guard width > 2, height > 2 else { return 0 }
    var sum = 0.0
    plane.samples.withUnsafeBufferPointer { samples in
      let bytes = UnsafeRawBufferPointer(samples)
      func eight(_ at: Int) -> SIMD8<Float> {
        bytes.loadUnaligned(fromByteOffset: at &* MemoryLayout<Float>.stride, as: SIMD8<Float>.self)
      }
      for y in 1..<(height - 1) {
        // The squares of a row add up to little enough for single precision.
        var (squares, rest) = (SIMD8<Float>(), Float(0))
        var at = y * width + 1
        let end = (y + 1) * width - 1
        while at + 8 <= end {
          let neighbours = eight(at - 1) + eight(at + 1) + eight(at - width) + eight(at + width)
          let difference = 4 * eight(at) - neighbours
          squares += difference * difference
          at += 8
        }
        while at < end {
          let neighbours = samples[at - 1] + samples[at + 1] + samples[at - width] + samples[at + width]
          let difference = 4 * samples[at] - neighbours
          rest += difference * difference
          at += 1
        }
        sum += Double(squares.sum() + rest)
      }
    }
    return sum / Double((width - 2) * (height - 2)) / 16
  }
}
