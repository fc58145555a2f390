public import ReelPlayback

/// As many neighbours as there are slots, each as deep as a stated memory allows.
///
/// The neighbours are served by rank: each gets the deepest stage whose measured memory fits what the current item
/// and those of better rank leave of the budget. The next item in the direction of travel keeps its decoder open where
/// that fits as well. Before anything was measured one neighbour is loaded to its first frame, and no other.
public struct BudgetPreload: PreloadPolicy, Hashable {
  /// The memory of the whole pool, in bytes; not negative.
  public let byteCount: Int

  /// A negative `byteCount` counts as 0.
  public init(byteCount: Int) {
    self.byteCount = max(byteCount, 0)
  }

  public func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
    guard !context.costs.isEmpty else {
      return context.rank == 0 && context.plannedByteCount < byteCount
        ? PreloadTarget(stage: .firstFrame) : .none
    }
    let (rest, overflow) = byteCount.subtractingReportingOverflow(context.plannedByteCount)
    guard !overflow, rest > 0 else { return .none }
    return Self.ladder(isNext: context.isNext(distance)).first { target in
      context.costs.memoryByteCount(of: target).map { $0 <= rest } ?? false
    } ?? .none
  }

  public var description: String { "budget:\(ByteSize(byteCount: byteCount).compact)" }

  // MARK: - Private

  /// What a neighbour may get, the deepest first.
  private static func ladder(isNext: Bool) -> [PreloadTarget] {
    let stages: [PreloadStage] = [.buffered, .firstFrame, .initialization, .manifest]
    let cold = stages.map { PreloadTarget(stage: $0) }
    return isNext ? [PreloadTarget(stage: .buffered, isDecoderWarm: true)] + cold : cold
  }
}
