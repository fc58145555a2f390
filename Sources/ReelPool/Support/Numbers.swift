internal import Foundation

extension Double {
  /// With so many decimals at the most, and no trailing zeros.
  package func formatted(places: Int) -> String {
    var text = String(format: "%.\(places)f", self)
    guard text.contains(".") else { return text }
    while text.hasSuffix("0") { text.removeLast() }
    if text.hasSuffix(".") { text.removeLast() }
    return text
  }
}
