internal import Foundation

/// A number with a unit behind it, as users write it.
package enum Quantity {
  /// The number and what follows it, without white space at the ends of either; nil where the text does not begin with
  /// a decimal number. There is no sign and no exponent.
  package static func split(_ text: some StringProtocol) -> (value: Double, unit: String)? {
    let trimmed = text.trimmed
    let number = trimmed.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    guard let value = Double(number), value.isFinite else { return nil }
    return (value, trimmed[number.endIndex...].trimmed)
  }
}

extension StringProtocol {
  /// Without white space at its ends.
  package var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}
