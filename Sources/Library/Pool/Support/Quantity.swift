internal import Foundation

/// A number followed by a unit.
package enum Quantity {
  /// Splits a text into the number and the unit, both trimmed; nil if the text does not begin with a decimal
  /// number. Signs and exponents are not allowed.
  package static func split(_ text: some StringProtocol) -> (value: Double, unit: String)? {
    let trimmed = text.trimmed
    let number = trimmed.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    guard let value = Double(number), value.isFinite else { return nil }
    return (value, trimmed[number.endIndex...].trimmed)
  }
}

extension StringProtocol {
  /// Without leading and trailing white space.
  package var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}
