package import ReelCore

/// A recorded downlink: a rate that changes in steps, and starts over when the recording ends.
///
/// Immutable and shared: a copy costs nothing. All arithmetic is in integers, so that the same recording gives the same
/// times on every machine, and period after period.
package struct LinkRecording: Sendable {
  /// A rate that holds until the next step starts.
  package struct Step: Sendable, Hashable {
    /// From the beginning of the recording.
    package let start: Duration
    package let bitsPerSecond: Int64

    package init(start: Duration, bitsPerSecond: Int64) {
      self.start = start
      self.bitsPerSecond = bitsPerSecond
    }
  }

  /// The largest number of steps.
  package static let stepLimit = 1_000_000
  package static let longestPeriod = Duration.seconds(1_000_000)
  /// The largest rate: 10,000 Gbit/s.
  package static let largestRate: Int64 = 10_000_000_000_000

  /// Times are in attoseconds. An amount is a rate times a time, 10¹⁸ per bit; within the limits above it
  /// fits 128 bits.
  final class Storage: Sendable {
    let starts: [Int128]
    let rates: [Int64]
    /// The amount that has crossed the link when each step begins.
    let amounts: [Int128]
    let period: Int128
    /// The amount of a period; above 0.
    let total: Int128

    init(starts: [Int128], rates: [Int64], amounts: [Int128], period: Int128, total: Int128) {
      self.starts = starts
      self.rates = rates
      self.amounts = amounts
      self.period = period
      self.total = total
    }
  }

  let storage: Storage

  /// Creates a recording. Neighbouring steps of one rate become one.
  ///
  /// - Parameters:
  ///   - steps: In order; the first begins at 0.
  ///   - period: The time at which the recording starts over; later than the last step's start.
  /// - Throws: `ReelError` of kind `badManifest` for steps out of order, a negative rate, no rate above 0, or more than
  ///   the limits.
  package init(_ steps: [Step], period: Duration) throws(ReelError) {
    guard let first = steps.first, first.start == .zero else {
      throw Self.failure("the recording has no beginning")
    }
    guard period <= Self.longestPeriod else {
      throw Self.failure(
        "the recording is longer than the limit of \(Self.longestPeriod.components.seconds) s")
    }
    var (starts, rates, amounts): ([Int128], [Int64], [Int128]) = ([], [], [])
    var amount: Int128 = 0
    for (index, step) in steps.enumerated() {
      let end = index + 1 < steps.count ? steps[index + 1].start : period
      guard end > step.start else { throw Self.failure("the steps of the recording are not in order") }
      guard (0...Self.largestRate).contains(step.bitsPerSecond) else {
        throw Self.failure("a rate is not between 0 and 10,000 Gbit/s")
      }
      if rates.last != step.bitsPerSecond {
        starts.append(step.start.attoseconds)
        rates.append(step.bitsPerSecond)
        amounts.append(amount)
      }
      amount += Int128(step.bitsPerSecond) * (end - step.start).attoseconds
    }
    guard rates.count <= Self.stepLimit else {
      throw Self.failure("the rate changes more often than the limit of \(Self.stepLimit) times")
    }
    guard amount > 0 else { throw Self.failure("all rates are 0") }
    storage = Storage(
      starts: starts, rates: rates, amounts: amounts, period: period.attoseconds, total: amount)
  }

  /// The time at which the recording starts over.
  package var period: Duration { Duration(attoseconds: storage.period) }

  /// The mean rate, rounded; at least 1.
  package var meanBitsPerSecond: Int64 {
    max(1, Int64((storage.total + storage.period / 2) / storage.period))
  }

  /// The steps, in order.
  package var steps: [Step] {
    zip(storage.starts, storage.rates).map { Step(start: Duration(attoseconds: $0), bitsPerSecond: $1) }
  }

  /// Returns the rate at a time. After the end of the recording, it starts over.
  package func bitsPerSecond(at time: Duration) -> Int64 {
    let rest = time.attoseconds % storage.period
    return storage.rates[step(at: rest < 0 ? rest + storage.period : rest)]
  }

  /// Returns the recording with all rates multiplied, and rounded to 1 bit/s.
  ///
  /// - Throws: `ReelError` of kind `badManifest` if all rates become 0, or one is too large.
  package func scaled(by factor: Double) throws(ReelError) -> LinkRecording {
    var scaled: [Step] = []
    for step in steps {
      let rate = (Double(step.bitsPerSecond) * factor).rounded()
      guard rate >= 0, rate <= Double(Self.largestRate) else {
        throw Self.failure("with this scale, a rate is not between 0 and 10,000 Gbit/s")
      }
      scaled.append(Step(start: step.start, bitsPerSecond: Int64(rate)))
    }
    return try LinkRecording(scaled, period: period)
  }

  /// A hash of the content, the same on every machine (FNV-1a over times and rates).
  package var fingerprint: UInt64 {
    var hash = FNV1a()
    for (start, rate) in zip(storage.starts, storage.rates) {
      hash.combine(word: UInt64(truncatingIfNeeded: start / 1_000_000_000))
      hash.combine(word: UInt64(bitPattern: rate))
    }
    hash.combine(word: UInt64(truncatingIfNeeded: storage.period / 1_000_000_000))
    return hash.value
  }

  // MARK: - Private

  /// Returns the index of the step that covers a time of the period.
  func step(at time: Int128) -> Int {
    Self.last(in: storage.starts) { $0 <= time }
  }

  /// Returns the index of the step in which the amount since the beginning reaches `amount`, which is above 0
  /// and at most that of a period.
  func step(reaching amount: Int128) -> Int {
    Self.last(in: storage.amounts) { $0 < amount }
  }

  /// Returns the last index whose value meets a condition that the first values meet and the others do not.
  /// The first value always meets it.
  private static func last(in values: [Int128], _ meets: (Int128) -> Bool) -> Int {
    values.indices.dropFirst().bisect { !meets(values[$0]) } - 1
  }

  private static func failure(_ reason: String) -> ReelError { ReelError(.badManifest, reason) }
}

extension LinkRecording: Hashable {
  package static func == (one: LinkRecording, other: LinkRecording) -> Bool {
    one.storage === other.storage
      || one.storage.period == other.storage.period && one.storage.starts == other.storage.starts
        && one.storage.rates == other.storage.rates
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(storage.period)
    hasher.combine(storage.starts)
    hasher.combine(storage.rates)
  }
}

/// A place in a recording that moves on with the bits that cross the link.
///
/// Finding the next place takes a few comparisons, or a binary search if it is far away: neither long times
/// at rate 0 nor a parcel that takes many periods are walked step by step.
struct LinkRecordingPosition: Sendable {
  private let recording: LinkRecording
  /// When the current period began, in attoseconds; the first may have begun before the link did.
  private var base: Int128
  private var index = 0

  /// - Parameters:
  ///   - start: The place in the recording at time `zero`; modulo its period.
  ///   - zero: The earliest time that will be queried.
  init(_ recording: LinkRecording, start: Duration, zero: Duration) {
    self.recording = recording
    base = zero.attoseconds - max(start, .zero).attoseconds % recording.storage.period
    moveOn(to: zero.attoseconds)
  }

  /// Returns the time at which `count` bits that enter the link at `time` have crossed it.
  ///
  /// - Parameter time: Not before the result of the previous call.
  mutating func end(ofBits count: Int64, from time: Duration) -> Duration {
    let storage = recording.storage
    moveOn(to: time.attoseconds)
    let passed = time.attoseconds - base - storage.starts[index]
    var amount = storage.amounts[index] + passed * Int128(storage.rates[index]) + Int128(count) * Self.unit
    if amount > storage.total {
      let periods = (amount - 1) / storage.total
      amount -= periods * storage.total
      base += periods * storage.period
      index = 0
    }
    var steps = 0
    while index + 1 < storage.amounts.count, storage.amounts[index + 1] < amount {
      index += 1
      steps += 1
      guard steps < Self.stepsBeforeSearch else {
        index = recording.step(reaching: amount)
        break
      }
    }
    let rate = Int128(storage.rates[index])
    // A step with rate 0 never reaches an amount, unless there is nothing to send.
    guard rate > 0 else { return time }
    let rest = (amount - storage.amounts[index] + rate - 1) / rate
    return max(time, Duration(attoseconds: base + storage.starts[index] + rest))
  }

  // MARK: - Private

  /// The amount of a bit.
  private static let unit: Int128 = 1_000_000_000_000_000_000
  private static let stepsBeforeSearch = 8

  private mutating func moveOn(to time: Int128) {
    let storage = recording.storage
    if time - base >= storage.period {
      base += (time - base) / storage.period * storage.period
      index = 0
    }
    let place = time - base
    var steps = 0
    while index + 1 < storage.starts.count, storage.starts[index + 1] <= place {
      index += 1
      steps += 1
      guard steps < Self.stepsBeforeSearch else {
        index = recording.step(at: place)
        break
      }
    }
  }
}
