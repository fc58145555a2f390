internal import Foundation

/// Converts R'G'B' with the primaries of BT.2020 to sRGB: HDR by the tone curve of BT.2390, SDR by its primaries alone.
///
/// 1. PQ is decoded to luminance (BT.2100 Table 4). HLG is decoded to scene light and shown as on a display of
///    1000 cd/m² (BT.2100 Table 5, with a system gamma of 1.2).
/// 2. The largest component of each pixel goes through the EETF of ITU-R BT.2390 §5.4.1, from the peak of the
///    content to 203 cd/m², the white of SDR (BT.2408 §2.1). All three components are scaled by the same
///    factor, which keeps the hue. Luminance below about 90 cd/m² stays as it is for a peak of 1000 cd/m².
/// 3. The primaries are converted to those of BT.709 by a matrix. Colors outside their gamut are clipped.
/// 4. The result is encoded with the transfer function of sRGB, in 8 bits.
package struct ToneMapper: Sendable {
  /// The transfer function of the source.
  package enum Transfer: Sendable, Hashable {
    case pq
    case hlg
    /// SDR: neutral colors stay unchanged.
    case sdr
  }

  /// The luminance of SDR white in cd/m².
  package static let white = 203.0
  /// The luminance of the brightest pixel, if the content does not state it, in cd/m².
  package static let assumedPeak = 1000.0

  private let transfer: Transfer
  /// The luminance of the brightest pixel in units of SDR white.
  private let peak: Float
  /// The factor of a pixel, by the square root of the ratio of its largest component to the peak.
  private let gains: [Float]

  private static let gainCount = 4096

  /// - Parameter peak: The luminance of the brightest pixel of the content, in cd/m²; nil if unknown. Not
  ///   used for HLG and SDR.
  package init(_ transfer: Transfer, peak stated: Double? = nil) {
    self.transfer = transfer
    let peak = transfer == .pq ? min(max(stated ?? Self.assumedPeak, Self.white), 10_000) : Self.assumedPeak
    self.peak = Float(peak / Self.white)
    gains =
      transfer == .sdr
      ? []
      : (0...Self.gainCount).map { index in
        let share = Double(index) / Double(Self.gainCount)
        let luminance = share * share * peak
        return luminance > 0 ? Float(Self.mapped(luminance, peak: peak) / luminance) : 1
      }
  }

  /// Converts pixels of three components.
  package func map(_ samples: [UInt16]) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: samples.count) { target, count in
      samples.withUnsafeBufferPointer { source in
        let linear = transfer == .pq ? Self.pqLight : transfer == .hlg ? Self.hlgLight : Self.sRGBLight
        linear.withUnsafeBufferPointer { linear in
          Self.sRGBCodes.withUnsafeBufferPointer { codes in
            for pixel in 0..<(samples.count / 3) {
              let light = mapped(
                SIMD3(
                  linear[Int(source[pixel * 3])], linear[Int(source[pixel * 3 + 1])],
                  linear[Int(source[pixel * 3 + 2])]))
              let place = light * Float(codes.count - 1) + 0.5
              target[pixel * 3] = codes[Int(place.x)]
              target[pixel * 3 + 1] = codes[Int(place.y)]
              target[pixel * 3 + 2] = codes[Int(place.z)]
            }
          }
        }
      }
      count = samples.count / 3 * 3
    }
  }

  /// Applies the EETF of ITU-R BT.2390 §5.4.1 to a luminance in cd/m²: from a range of 0 to `peak` to one of
  /// 0 to `white`.
  static func mapped(_ luminance: Double, peak: Double) -> Double {
    guard peak > white else { return min(luminance, white) }
    let whole = pqCode(peak)
    let limit = pqCode(white) / whole
    let knee = 1.5 * limit - 0.5
    let code = min(1, pqCode(luminance) / whole)
    guard code > knee else { return luminance }
    let t = (code - knee) / (1 - knee)
    let (square, cube) = (t * t, t * t * t)
    let mapped =
      (2 * cube - 3 * square + 1) * knee + (cube - 2 * square + t) * (1 - knee)
      + (-2 * cube + 3 * square) * limit
    return pqLuminance(mapped * whole)
  }

  /// Returns the luminance in cd/m² of a PQ value from 0 to 1 (SMPTE ST 2084).
  static func pqLuminance(_ code: Double) -> Double {
    let root = pow(code, 1 / m2)
    return 10_000 * pow(max(0, root - c1) / (c2 - c3 * root), 1 / m1)
  }

  /// Returns the PQ value of a luminance in cd/m².
  static func pqCode(_ luminance: Double) -> Double {
    let power = pow(max(0, luminance) / 10_000, m1)
    return pow((c1 + c2 * power) / (1 + c3 * power), m2)
  }

  // MARK: - Private

  private static let m1 = 2610.0 / 16384
  private static let m2 = 2523.0 / 4096 * 128
  private static let c1 = 3424.0 / 4096
  private static let c2 = 2413.0 / 4096 * 32
  private static let c3 = 2392.0 / 4096 * 32

  /// Converts light of BT.2020 in units of SDR white (HLG: of the scene, from 0 to 1) to light of BT.709 from
  /// 0 to 1.
  @inline(__always)
  private func mapped(_ source: SIMD3<Float>) -> SIMD3<Float> {
    var light = source
    if transfer == .hlg {
      let luma = 0.2627 * light.x + 0.678 * light.y + 0.0593 * light.z
      light *= peak * powf(max(luma, 1e-6), 0.2)
    }
    if transfer != .sdr {
      let most = light.max()
      if most >= peak {
        light /= most
      } else {
        let place = (most / peak).squareRoot() * Float(Self.gainCount)
        let index = min(Int(place), Self.gainCount - 1)
        let rest = place - Float(index)
        light *= gains[index] + (gains[index + 1] - gains[index]) * rest
      }
    }
    // BT.2020 to BT.709 (ITU-R BT.2087 gives the inverse).
    let converted = SIMD3(
      1.660491 * light.x - 0.587641 * light.y - 0.072850 * light.z,
      -0.124550 * light.x + 1.132900 * light.y - 0.008349 * light.z,
      -0.018151 * light.x - 0.100579 * light.y + 1.118730 * light.z)
    return converted.clamped(lowerBound: SIMD3(repeating: 0), upperBound: SIMD3(repeating: 1))
  }

  private static func light(_ body: (Double) -> Double) -> [Float] {
    (0...65535).map { Float(body(Double($0) / 65535)) }
  }

  /// PQ light in units of SDR white.
  private static let pqLight = light { pqLuminance($0) / white }

  /// The inverse OETF of HLG.
  private static let hlgLight = light { code in
    let (a, b, c) = (0.17883277, 0.28466892, 0.55991073)
    return code <= 0.5 ? code * code / 3 : (exp((code - c) / a) + b) / 12
  }

  private static let sRGBLight = light { code in
    code <= 0.04045 ? code / 12.92 : pow((code + 0.055) / 1.055, 2.4)
  }

  private static let sRGBCodes: [UInt8] = (0...65535).map { index in
    let light = Double(index) / 65535
    let code = light <= 0.0031308 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055
    return UInt8(min(255, max(0, (code * 255).rounded())))
  }
}
