import Foundation
import ReelLab
import ReelSimulation
import Testing

@Suite("Paired bootstrap")
struct PairedBootstrapTests {
  /// A number of the normal distribution with mean 0 and deviation 1, by Box and Muller.
  private func normal(_ random: inout SplitMix64) -> Double {
    sqrt(2 * random.nextExponential()) * cos(2 * .pi * random.nextUnit())
  }

  @Test("Equal differences have an interval without width, at their value", arguments: [0.1, -3, 0, 1e9 / 7])
  func constant(value: Double) throws {
    let differences = Array(repeating: value, count: 7)
    let interval = try #require(PairedBootstrap.interval(of: differences))
    #expect(interval.lower == value)
    #expect(interval.upper == value)
    #expect(interval.excludesZero == (value != 0))
    #expect(PairedBootstrap.mean(of: differences) == value)
  }

  @Test("Fewer than two pairs have no interval")
  func few() {
    #expect(PairedBootstrap.interval(of: []) == nil)
    #expect(PairedBootstrap.interval(of: [5]) == nil)
    #expect(PairedBootstrap.intervals(rows: [1, 2, 3], width: 3) == [nil, nil, nil])
    #expect(PairedBootstrap.intervals(rows: [], width: 0).isEmpty)
  }

  @Test("The means of resampled zeros and ones are binomial")
  func binomial() throws {
    // Of two: 0, 0.5 and 1 with chances of 1/4, 1/2 and 1/4.
    let two = try #require(PairedBootstrap.interval(of: [0, 1]))
    #expect(two.lower == 0 && two.upper == 1)
    // Of ten: at most 1 of 10 with a chance of 1.07 %, at most 2 with 5.5 %.
    let ten = try #require(PairedBootstrap.interval(of: [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]))
    #expect(ten.lower == 0.2 && ten.upper == 0.8)
  }

  @Test("For many pairs the interval is that of the normal distribution")
  func manyPairs() throws {
    var random = SplitMix64(seed: 11)
    let differences = (0..<2_000).map { _ in 10 + normal(&random) }
    let mean = PairedBootstrap.mean(of: differences)
    let variance = differences.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(differences.count)
    let half = 1.96 * sqrt(variance / Double(differences.count))
    let interval = try #require(PairedBootstrap.interval(of: differences))
    #expect(abs(interval.lower - (mean - half)) < half * 0.1)
    #expect(abs(interval.upper - (mean + half)) < half * 0.1)
    #expect(interval.excludesZero)
  }

  @Test("Of 200 normal samples, some 95 % of the intervals hold the mean")
  func coverage() throws {
    var random = SplitMix64(seed: 2_026)
    var held = 0
    for _ in 0..<200 {
      let sample = (0..<40).map { _ in 3 + 2 * normal(&random) }
      let interval = try #require(PairedBootstrap.interval(of: sample))
      if interval.lower <= 3, 3 <= interval.upper { held += 1 }
    }
    // 95 % and twice the deviation of 1.5 %, below also the 1 % by which percentiles of 40 fall short.
    #expect((182...196).contains(held), "\(held)")
  }

  @Test("Figures of the same pairs have the intervals that they have alone")
  func columns() {
    var random = SplitMix64(seed: 5)
    let rows = (0..<30).map { _ in (0..<4).map { _ in random.nextUnit() } }
    let intervals = PairedBootstrap.intervals(rows: rows.flatMap(\.self), width: 4)
    for column in 0..<4 {
      #expect(intervals[column] == PairedBootstrap.interval(of: rows.map { $0[column] }))
    }
  }

  @Test("The same interval on every machine")
  func fixed() throws {
    var random = SplitMix64(seed: 1)
    let differences = (0..<25).map { _ in random.nextUnit() - 0.3 }
    let interval = try #require(PairedBootstrap.interval(of: differences))
    #expect(interval.lower == 0.12504142908338028)
    #expect(interval.upper == 0.32544865196657086)
  }
}
