public import ReelPlayback

/// The measured costs of each stage: a running average over the loaded items that follows the latest ones.
public struct StageCosts: Sendable, Hashable {
  /// The average of one stage, and the number of items that it covers.
  private struct Average: Hashable {
    var cost: StageCost
    var sampleCount: Int
  }

  /// The same for the memory of open decoders.
  private struct WarmDecoder: Hashable {
    var byteCount: Int
    var sampleCount: Int
  }

  /// The weight limit of the average: from this many items on, a new item counts as one of this many. 8.
  public static let window = 8

  /// The duration of media that the cost of the stage `buffered` includes. Defaults to 3 s.
  public let bufferDuration: Duration
  private var averages: [PreloadStage: Average] = [:]
  private var warmDecoder: WarmDecoder?

  /// Costs with nothing measured.
  ///
  /// - Parameter bufferDuration: The duration of media that the recorded items hold at the stage `buffered`.
  public init(bufferDuration: Duration = .seconds(3)) {
    self.bufferDuration = bufferDuration
  }

  /// The average cost of a stage; `nil` until an item has reached it.
  public subscript(stage: PreloadStage) -> StageCost? { averages[stage]?.cost }

  /// The memory of an open decoder beyond that of the stage, in bytes; `nil` until one has been measured.
  public var warmDecoderByteCount: Int? { warmDecoder?.byteCount }

  /// True if nothing has been recorded yet.
  public var isEmpty: Bool { averages.isEmpty }

  /// Adds the cost of an item that has reached `stage`. The cost includes the stages before it.
  public mutating func record(_ cost: StageCost, of stage: PreloadStage) {
    guard stage != .none else { return }
    guard var average = averages[stage] else {
      averages[stage] = Average(cost: cost, sampleCount: 1)
      return
    }
    average.sampleCount = min(average.sampleCount + 1, Self.window)
    let (old, count) = (average.cost, average.sampleCount)
    average.cost = StageCost(
      memoryByteCount: Self.average(old.memoryByteCount, cost.memoryByteCount, count: count),
      networkByteCount: Self.average(old.networkByteCount, cost.networkByteCount, count: count),
      duration: old.duration + (cost.duration - old.duration) / count)
    averages[stage] = average
  }

  /// Adds the memory of a decoder that is kept open.
  public mutating func recordWarmDecoder(byteCount: Int) {
    guard let warmDecoder else {
      self.warmDecoder = WarmDecoder(byteCount: byteCount, sampleCount: 1)
      return
    }
    let count = min(warmDecoder.sampleCount + 1, Self.window)
    self.warmDecoder = WarmDecoder(
      byteCount: Self.average(warmDecoder.byteCount, byteCount, count: count), sampleCount: count)
  }

  /// The expected memory of an item that has reached `target`, in bytes.
  ///
  /// A stage that has not been measured counts as the next later one that has. Media beyond the first frame counts in
  /// proportion to its duration, up to the target's byte limit.
  ///
  /// - Returns: `nil` if neither the stage nor a later one has been measured, or if the target keeps the decoder open
  ///   and no open decoder has been measured.
  public func memoryByteCount(of target: PreloadTarget) -> Int? {
    guard target.stage != .none else { return 0 }
    guard var byteCount = knownMemory(of: target.stage) else { return nil }
    if target.stage == .buffered, let first = self[.firstFrame]?.memoryByteCount, first <= byteCount {
      let share = bufferDuration > .zero ? max(target.bufferDuration / bufferDuration, 0) : 1
      var media = Double(byteCount - first) * share
      if let limit = target.byteLimit { media = min(media, Double(max(limit, 0))) }
      byteCount = first.addingClamped(Int(clamping: media))
    }
    guard target.isDecoderWarm else { return byteCount }
    return warmDecoderByteCount.map { byteCount.addingClamped($0) }
  }

  // MARK: - Private

  private func knownMemory(of stage: PreloadStage) -> Int? {
    PreloadStage.allCases.first { $0 >= stage && averages[$0] != nil }
      .flatMap { averages[$0]?.cost.memoryByteCount }
  }

  private static func average(_ old: Int, _ new: Int, count: Int) -> Int { old + (new - old) / count }
}

extension Int {
  /// The sum; on overflow, the largest or smallest integer.
  func addingClamped(_ other: Int) -> Int {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? (other > 0 ? .max : .min) : sum
  }

  /// The whole part of `value`, or the nearest representable integer; 0 for NaN.
  init(clamping value: Double) {
    if value.isNaN {
      self = 0
    } else if value >= Double(Int.max) {
      self = .max
    } else {
      self = value <= Double(Int.min) ? .min : Int(value)
    }
  }
}
