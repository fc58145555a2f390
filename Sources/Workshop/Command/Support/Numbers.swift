import Foundation

extension Double {
  /// Rounds to a number of decimals, for JSON.
  func rounded(places: Int) -> Double {
    let factor = pow(10, Double(places))
    return (self * factor).rounded() / factor
  }
}
