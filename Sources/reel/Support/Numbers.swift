import Foundation

extension Double {
  /// With so many decimals at the most, and no trailing zeros.
  func formatted(places: Int) -> String {
    var text = String(format: "%.\(places)f", self)
    guard text.contains(".") else { return text }
    while text.hasSuffix("0") { text.removeLast() }
    if text.hasSuffix(".") { text.removeLast() }
    return text
  }

  /// Rounded to so many decimals, for JSON.
  func rounded(places: Int) -> Double {
    let factor = pow(10, Double(places))
    return (self * factor).rounded() / factor
  }
}

extension Duration {
  /// In milliseconds, to the microsecond.
  var milliseconds: Double {
    (Double(components.seconds) * 1e3 + Double(components.attoseconds) / 1e15).rounded(places: 3)
  }
}
