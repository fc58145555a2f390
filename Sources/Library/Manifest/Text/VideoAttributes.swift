import Foundation
import ReelCore

extension PixelSize {
  /// `1280x720`; nil for other text, or a size without pixels.
  init?(resolution text: String) {
    let parts = text.lowercased().split(separator: "x", omittingEmptySubsequences: false)
    guard parts.count == 2, let width = String(parts[0]).integer, let height = String(parts[1]).integer else {
      return nil
    }
    self.init(width: width, height: height)
  }

  /// Nil if one side has no pixels, or exceeds 31 bits.
  init?(width: Int64?, height: Int64?) {
    let sides = Int64(1)...Int64(Int32.max)
    guard let width, let height, sides.contains(width), sides.contains(height) else { return nil }
    self.init(width: Int(width), height: Int(height))
  }
}

extension Rational {
  /// A frame rate as manifests write it: `30`, `30000/1001`, `29.970`. A decimal that stands for one of the NTSC
  /// rates becomes that rate.
  package init?(frameRate text: String) {
    if text.contains("/") {
      self.init(ratio: text, separator: "/")
      return
    }
    guard let rate = Double(text.trimmed), rate > 0, rate < 100_000 else { return nil }
    let whole = rate.rounded(.up)
    if abs(rate - whole * 1000 / 1001) < 0.002, abs(rate - whole) > 0.002 {
      self.init(Int32(whole) * 1000, 1001)
    } else if rate == rate.rounded() {
      self.init(Int32(rate), 1)
    } else {
      self.init(Int32((rate * 1000).rounded()), 1000)
    }
  }

  /// Two positive numbers with `separator` between them, reduced.
  package init?(ratio text: String, separator: Character) {
    let parts = text.split(separator: separator, omittingEmptySubsequences: false)
    guard parts.count == 2, let left = String(parts[0]).integer, let right = String(parts[1]).integer,
      let numerator = Int32(exactly: left), let denominator = Int32(exactly: right), numerator > 0,
      denominator > 0
    else { return nil }
    var (divisor, rest) = (numerator, denominator)
    while rest != 0 { (divisor, rest) = (rest, divisor % rest) }
    self.init(numerator / divisor, denominator / divisor)
  }
}
