import Foundation

extension Double {
  /// Rounded to so many decimals, for JSON.
  func rounded(places: Int) -> Double {
    let factor = pow(10, Double(places))
    return (self * factor).rounded() / factor
  }
}
