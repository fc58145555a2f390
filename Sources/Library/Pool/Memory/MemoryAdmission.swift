package import ReelPlayback

/// Decides how far preloads are loaded within a memory limit. A pure value, called for each preload in order
/// of rank.
///
/// A preload gets the furthest stage up to the requested one whose expected memory fits the memory left by
/// the current item, pinned players and preloads of better rank. A stage that no item has reached yet has no
/// expected memory, so it does not fit. The memory that a preload already holds is kept as long as that fits.
struct MemoryAdmission: Sendable {
  /// A preload to be decided on.
  struct Request: Sendable {
    var wanted: PreloadTarget
    /// The target granted so far; nil for a preload that has not begun.
    var granted: PreloadTarget?
    var heldByteCount = 0
  }

  /// The decision on a preload.
  struct Answer: Sendable, Equatable {
    var target: PreloadTarget
    /// True if that is less than requested.
    var isLimited: Bool
  }

  private let limit: Int
  private let costs: StageCosts
  private let warmDecoderByteCount: Int
  /// The memory of everything that was admitted.
  private var committedByteCount: Int
  /// The number of bytes that the admitted items are expected to hold in addition to their current memory.
  private(set) var growth: Int

  /// - Parameters:
  ///   - heldByteCount: The current memory of the current item and of pinned players.
  ///   - expectedByteCount: The memory that they are expected to hold.
  ///   - decodingByteCount: The memory of an open decoder, if `costs` has none.
  init(
    limit: Int, costs: StageCosts, heldByteCount: Int, expectedByteCount: Int, decodingByteCount: Int
  ) {
    self.limit = limit
    self.costs = costs
    warmDecoderByteCount = costs.warmDecoderByteCount ?? decodingByteCount
    committedByteCount = max(heldByteCount, expectedByteCount)
    growth = max(0, expectedByteCount - heldByteCount)
  }

  mutating func admit(_ request: Request) -> Answer {
    let rest = limit - min(committedByteCount, limit)
    // With nothing left, not even a stage that is expected to hold nothing is begun.
    for target in rest > 0 ? Self.ladder(request.wanted) : [] {
      let expected = self.expected(of: target).map { max($0, request.heldByteCount) }
      let isGranted = request.granted.map { target.isNoFurther(than: $0) } ?? false
      guard let byteCount = isGranted ? request.heldByteCount : expected, byteCount <= rest else { continue }
      // A target that was granted before may still grow.
      let planned = max(byteCount, isGranted ? min(expected ?? 0, rest) : 0)
      committedByteCount = committedByteCount.addingClamped(planned)
      growth = growth.addingClamped(planned - request.heldByteCount)
      return Answer(target: target, isLimited: target != request.wanted)
    }
    // Its current memory is already too much: the pool must end it, or one of worse rank.
    committedByteCount = committedByteCount.addingClamped(request.heldByteCount)
    return Answer(target: request.granted ?? .notLoaded, isLimited: true)
  }

  // MARK: - Private

  /// Returns the targets to try, the furthest first.
  private static func ladder(_ wanted: PreloadTarget) -> [PreloadTarget] {
    var targets = [wanted]
    if wanted.isDecoderWarm {
      targets.append(wanted)
      targets[1].isDecoderWarm = false
    }
    let stages: [PreloadStage] = [.firstFrame, .initialization, .manifest]
    return targets + stages.filter { $0 < wanted.stage }.map { PreloadTarget(stage: $0) }
  }

  private func expected(of target: PreloadTarget) -> Int? {
    var cold = target
    cold.isDecoderWarm = false
    return costs.memoryByteCount(of: cold).map {
      target.isDecoderWarm ? $0.addingClamped(warmDecoderByteCount) : $0
    }
  }
}

extension PreloadTarget {
  /// Returns true if this target requires no more loading than the other.
  fileprivate func isNoFurther(than other: PreloadTarget) -> Bool {
    guard stage <= other.stage, !isDecoderWarm || other.isDecoderWarm else { return false }
    guard stage == .buffered else { return true }
    return bufferDuration <= other.bufferDuration && byteLimit ?? .max <= other.byteLimit ?? .max
  }
}

/// Receives the figures of a pool's work, at once and on any thread.
package struct PoolAccountant: Sendable {
  /// The figures of an item when it leaves its player, or is rewound.
  package struct Departure: Sendable {
    package var fetchedByteCount: Int64
    package var statistics: PlayerStatistics
  }

  /// Called with the total number of frames that an item's decoders have returned.
  package var decoded: @Sendable (FeedItem.ID, Int) -> Void
  package var departed: @Sendable (FeedItem.ID, Departure) -> Void
  /// Called when an item that has ended and was left reloads its start, with its figures until then.
  package var rewound: @Sendable (FeedItem.ID, Departure) -> Void

  package init(
    decoded: @escaping @Sendable (FeedItem.ID, Int) -> Void,
    departed: @escaping @Sendable (FeedItem.ID, Departure) -> Void,
    rewound: @escaping @Sendable (FeedItem.ID, Departure) -> Void = { _, _ in }
  ) {
    self.decoded = decoded
    self.departed = departed
    self.rewound = rewound
  }
}
