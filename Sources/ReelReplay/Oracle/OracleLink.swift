package import ReelCore

/// The bytes that a link can carry by a time, for arithmetic on whole transfers.
///
/// Times are microseconds since the walk began. A transfer takes the whole link. Connection set-up, congestion windows,
/// certificates, name look-ups and jitter are left out, so the real link is never faster.
package struct OracleLink: Sendable {
  /// The round-trip time.
  package let roundTrip: Int64

  /// The beginnings of the steps in seconds, their rates in bytes per second, and the bytes before each.
  private let starts: [Double]
  private let rates: [Double]
  private let amounts: [Double]
  private let period: Double
  private let total: Double
  /// The place in the recording at time 0.
  private let offset: Double

  package init(_ link: LinkSpec) {
    roundTrip = link.roundTripTime.wholeMicroseconds
    let steps = link.recording?.steps ?? [LinkRecording.Step(start: .zero, bitsPerSecond: link.bitsPerSecond)]
    let period = (link.recording?.period ?? .seconds(1)) / .seconds(1)
    self.period = period
    let starts = steps.map { $0.start / .seconds(1) }
    let rates = steps.map { Double($0.bitsPerSecond) / 8 }
    var amounts: [Double] = []
    var amount = 0.0
    for index in starts.indices {
      amounts.append(amount)
      amount += rates[index] * ((index + 1 < starts.count ? starts[index + 1] : period) - starts[index])
    }
    (self.starts, self.rates, self.amounts, total) = (starts, rates, amounts, amount)
    let place = link.start / .seconds(1)
    offset = place - (place / period).rounded(.down) * period
  }

  /// When a transfer that begins at `time` is across, rounded up.
  package func end(ofByteCount count: Int64, from time: Int64) -> Int64 {
    guard count > 0 else { return time }
    let seconds = self.time(reaching: amount(at: time) + Double(count))
    // A hair less, so that whole microseconds stay whole.
    return max(time, Int64((seconds * 1e6 - 1e-3).rounded(.up)))
  }

  /// The bytes that cross between two times, rounded down.
  package func byteCount(from begin: Int64, to end: Int64) -> Int64 {
    end > begin ? Int64((amount(at: end) - amount(at: begin) + 1e-6).rounded(.down)) : 0
  }

  /// The bytes that have crossed a link that was never idle, from the beginning of its recording.
  func amount(at time: Int64) -> Double {
    let seconds = Double(time) / 1e6 + offset
    let periods = (seconds / period).rounded(.down)
    let rest = seconds - periods * period
    let index = Self.last(in: starts) { $0 <= rest }
    return periods * total + amounts[index] + rates[index] * (rest - starts[index])
  }

  // MARK: - Private

  /// The first time in seconds at which so many bytes are across.
  private func time(reaching amount: Double) -> Double {
    var periods = (amount / total).rounded(.down)
    var rest = amount - periods * total
    if rest <= 0 {
      periods -= 1
      rest += total
    }
    let index = Self.last(in: amounts) { $0 < rest }
    let passed = rates[index] > 0 ? (rest - amounts[index]) / rates[index] : 0
    return periods * period + starts[index] + passed - offset
  }

  /// The last index whose value meets a condition that the first values meet and the others do not.
  private static func last(in values: [Double], _ meets: (Double) -> Bool) -> Int {
    var (low, high) = (0, values.count)
    while high - low > 1 {
      let middle = (low + high) / 2
      if meets(values[middle]) { low = middle } else { high = middle }
    }
    return low
  }
}
