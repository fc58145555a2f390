public import ReelPlayback

/// Preloads as many neighbours, and each as far, as a memory budget allows.
///
/// Neighbours are served by rank. Each gets the furthest stage whose measured memory fits what the current item and the
/// neighbours of lower rank number leave of the budget. The next item in the direction of travel keeps its decoder open
/// if that fits too. Until something has been measured, only one neighbour is loaded, up to its first frame.
public struct BudgetPreload: PreloadPolicy, Hashable {
  /// The budget for the whole pool, in bytes, not negative.
  public let byteCount: Int

  /// The policy `budget:SIZE`.
  ///
  /// - Parameter byteCount: The budget in bytes. A negative number counts as 0.
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

  /// The targets to try for a neighbour, the furthest first.
  private static func ladder(isNext: Bool) -> [PreloadTarget] {
    let stages: [PreloadStage] = [.buffered, .firstFrame, .initialization, .manifest]
    let cold = stages.map { PreloadTarget(stage: $0) }
    return isNext ? [PreloadTarget(stage: .buffered, isDecoderWarm: true)] + cold : cold
  }
}
