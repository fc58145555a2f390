internal import Foundation

extension Double {
  /// At most `places` decimals, without trailing zeros.
  package func formatted(places: Int) -> String {
    var text = String(format: "%.\(places)f", self)
    guard text.contains(".") else { return text }
    while text.hasSuffix("0") { text.removeLast() }
    if text.hasSuffix(".") { text.removeLast() }
    return text
  }
}

extension BinaryInteger {
  /// The number with what it counts: `1 segment`, `2 segments`.
  ///
  /// - Parameters:
  ///   - one: The noun, or a phrase that begins with it, for one.
  ///   - several: The same for any other number; nil for `one` with an s.
  package func counted(_ one: String, _ several: String? = nil) -> String {
    "\(self) \(self == 1 ? one : several ?? one + "s")"
  }
}

extension Duration {
  /// Rounded to the nearest one.
  package var wholeMicroseconds: Int64 {
    let (seconds, attoseconds) = components
    return seconds * 1_000_000 + (attoseconds + (attoseconds < 0 ? -500_000_000_000 : 500_000_000_000))
      / 1_000_000_000_000
  }

  /// In milliseconds, to the microsecond.
  package var milliseconds: Double { Double(wholeMicroseconds) / 1e3 }
}
