internal import Foundation

/// The distribution of a link's rate in the next seconds, estimated from measurements.
///
/// The logarithm of the rate follows Student's t-distribution with two degrees of freedom around the measured one. Its
/// scale is the measured deviation and, for changes that were not seen yet, a drift.
struct LinkForecast: Sendable {
  /// The drift: the typical change of the logarithm of the rate from one 5 s to the next on recorded links.
  private static let drift = 0.3
  /// How long a rate lasts on average, in seconds: the time in which a sample of the meter loses half of its weight.
  private static let meanDuration = ThroughputMeter.halfLife.inSeconds

  let roundTrip: Duration
  /// The rate that the link stays above four times of five, in bits per second.
  let likelyRate: Double
  /// The rate that the link stays above nine times of ten, in bits per second.
  let safeRate: Double
  /// Rates, each with its probability, in rising order.
  private let rates: [(rate: Double, share: Double)]

  /// - Parameter throughput: With a mean above 0.
  init(_ throughput: ThroughputEstimate) {
    let mean = throughput.mean
    roundTrip = throughput.roundTripTime ?? .zero
    let variation = throughput.standardDeviation / mean
    let variance = log1p(variation * variation) + Self.drift * Self.drift
    let spread = variance.squareRoot()
    func rate(at probability: Double) -> Double {
      let quantile = (2 * probability - 1) / (2 * probability * (1 - probability)).squareRoot()
      return mean * exp(quantile * spread - variance / 2)
    }
    likelyRate = rate(at: 0.2)
    safeRate = rate(at: 0.1)
    // Finer towards low rates, which matter.
    let lower = (0...24).reversed().map { 0.5 * pow(0.75, Double($0)) }
    let upper = (1...8).map { 0.5 + 0.0625 * Double($0) }
    let bounds = [0] + lower + upper
    rates = zip(bounds, bounds.dropFirst()).map { (rate(at: ($0 + $1) / 2), $1 - $0) }
  }

  /// The probability that an item runs dry.
  ///
  /// At a rate C below the item's bit rate r, it loses 1 - C/r seconds of media each second. Bad moments last
  /// exponentially distributed times.
  ///
  /// - Parameter buffered: The media ahead, in seconds.
  func risk(bitRate: Double, buffered: Double) -> Double {
    var sum = 0.0
    for (rate, share) in rates {
      guard rate < bitRate else { break }
      sum += share * exp(-buffered / (Self.meanDuration * (1 - rate / bitRate)))
    }
    return sum
  }

  /// The probability that a bad moment lasts until the viewer swipes, which happens at a constant rate after `seconds` on
  /// average.
  func persistence(for seconds: Double) -> Double { Self.meanDuration / (Self.meanDuration + seconds) }
}
