public import ReelPlayback

/// What the stages have cost so far: an average over the items that were loaded, which follows the latest ones.
///
/// A pure value: whoever loads items records what each took.
public struct StageCosts: Sendable, Hashable {
  /// The average of one stage, and of how many items it is.
  private struct Average: Hashable {
    var cost: StageCost
    var sampleCount: Int
  }

  /// The same of the memory of open decoders.
  private struct WarmDecoder: Hashable {
    var byteCount: Int
    var sampleCount: Int
  }

  /// How many items the average is of at most: a later one counts as much as each of so many.
  public static let window = 8

  /// How much media the cost of the stage `buffered` stands for. 3 s.
  public let bufferDuration: Duration
  private var averages: [PreloadStage: Average] = [:]
  private var warmDecoder: WarmDecoder?

  /// Nothing is known.
  ///
  /// `bufferDuration` is how much media the items that are recorded hold at the stage `buffered`.
  public init(bufferDuration: Duration = .seconds(3)) {
    self.bufferDuration = bufferDuration
  }

  /// What this stage costs, as far as is known: nil before an item has reached it.
  public subscript(stage: PreloadStage) -> StageCost? { averages[stage]?.cost }

  /// What an open decoder takes beyond the stage's own memory, in bytes; nil before one was measured.
  public var warmDecoderByteCount: Int? { warmDecoder?.byteCount }

  /// Nothing was recorded yet.
  public var isEmpty: Bool { averages.isEmpty }

  /// Counts an item that has reached `stage`. What `cost` holds includes the stages before it.
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

  /// Counts a decoder that was kept open and takes so many bytes.
  public mutating func recordWarmDecoder(byteCount: Int) {
    guard let warmDecoder else {
      self.warmDecoder = WarmDecoder(byteCount: byteCount, sampleCount: 1)
      return
    }
    let count = min(warmDecoder.sampleCount + 1, Self.window)
    self.warmDecoder = WarmDecoder(
      byteCount: Self.average(warmDecoder.byteCount, byteCount, count: count), sampleCount: count)
  }

  /// The memory that an item takes once it is where `target` wants it, in bytes.
  ///
  /// A stage that was never measured counts as the nearest deeper one that was, which includes it. Media beyond the
  /// first frame counts by its duration and ends at the target's byte limit. Nil where neither the stage nor a
  /// deeper one was measured, or where the decoder is to stay open and none was measured.
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
  /// The sum, or the largest integer where it is beyond it.
  func addingClamped(_ other: Int) -> Int {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? (other > 0 ? .max : .min) : sum
  }

  /// The whole part of `value`, or the nearest integer that there is; 0 for what is no number.
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
