internal import Foundation
package import ReelCore
package import ReelModels

/// A model whose fixed costs were fitted to a recording.
///
/// Costs add to a wait, so that the median of what a model misses is what its costs lack. Half of the swipes are used for
/// this, apart for preloaded items and for others; the rest tells how well it works.
package struct ModelFit: Sendable {
  package let model: PlayerModel
  /// The costs that were fitted, in milliseconds.
  package let costs: [(name: String, before: Double, after: Double)]
  /// The costs that were not, and why.
  package let omissions: [String]
  /// The number of swipes that were used.
  package let usedCount: Int
  /// The swipes that were left out, as the model predicts them before and afterwards.
  package let before: [PredictedSwipe]
  package let after: [PredictedSwipe]

  private static let leastSwipeCount = 4
  private static let roundLimit = 6

  /// - Parameters:
  ///   - source: Where the fitted costs come from.
  ///   - predict: Walks the recorded walks with a model.
  /// - Throws: `ReelError` of kind `usage` if there are too few swipes.
  package init(
    _ original: PlayerModel, source: PlayerModel.Source, predict: (PlayerModel) -> [PredictedSwipe]
  ) throws(ReelError) {
    let first = predict(original)
    let count = first.count { $0.isUsable }
    guard count >= Self.leastSwipeCount else {
      throw ReelError(
        .usage,
        "costs can't be fitted to \(count.counted("swipe")) with a first frame: \(Self.leastSwipeCount) are needed",
        at: source.recording, advice: "record a longer walk, such as with /-/feed?swipes=40")
    }
    let used = Self.half(of: first)
    let places = first.indices.filter { first[$0].isUsable }
    func half(_ swipes: [PredictedSwipe], isUsed: Bool) -> [PredictedSwipe] {
      places.filter { used.contains($0) == isUsed }.map { swipes[$0] }
    }
    var (model, all) = (original, first)
    var fitted: Set<String> = []
    for _ in 0..<Self.roundLimit {
      let last = model.costs
      fitted.formUnion(Self.improve(&model.costs, half(all, isUsed: true)))
      all = predict(model)
      if Self.costs.allSatisfy({ abs(last[keyPath: $0.path] - model.costs[keyPath: $0.path]) < 0.5 }) {
        break
      }
    }
    var costs: [(name: String, before: Double, after: Double)] = []
    for (name, path) in Self.costs {
      let (old, new) = (original.costs[keyPath: path], model.costs[keyPath: path])
      guard fitted.contains(name) || old != new else { continue }
      costs.append((name, old, new))
      model.sources["costs.\(name)"] = source
    }
    self.model = model
    self.costs = costs
    omissions = [
      ("present_ms", "no swipe began to load its item"), ("play_ms", "no such swipe has a second frame"),
      ("swap_ms", "no swipe went to a preloaded item"),
    ].filter { !fitted.contains($0.0) }.map { "\($0.0): \($0.1)" }
    usedCount = used.count
    before = half(first, isUsed: false)
    after = half(all, isUsed: false)
  }

  // MARK: - Private

  private typealias Cost = (name: String, path: WritableKeyPath<PlayerModel.Costs, Double>)

  /// What a start costs: one shift is added to the first, or taken from one after the other.
  private static var starts: [Cost] {
    [
      ("present_ms", \.presentMs), ("create_ms", \.createMs), ("append_ms", \.appendMs),
      ("open_decoder_ms", \.openDecoderMs), ("parse_ms", \.parseMs), ("decode_ms", \.decodeMs),
    ]
  }

  private static var costs: [Cost] { starts + [("play_ms", \.playMs), ("swap_ms", \.swapMs)] }

  /// The places of half of the usable swipes, among those that found a frame and among the others.
  ///
  /// They are chosen by the Thue–Morse sequence, so that of a feed that repeats its items each is in both halves.
  private static func half(of swipes: [PredictedSwipe]) -> Set<Int> {
    var (used, counts) = (Set<Int>(), [false: 0, true: 0])
    for (place, swipe) in swipes.enumerated() where swipe.isUsable {
      let isReady = swipe.recorded.isReady ?? swipe.isPreloaded
      if counts[isReady, default: 0].nonzeroBitCount % 2 == 0 { used.insert(place) }
      counts[isReady, default: 0] += 1
    }
    return used
  }

  /// Adds to costs what the predictions lack. Returns the names of those that it could judge.
  private static func improve(_ costs: inout PlayerModel.Costs, _ swipes: [PredictedSwipe]) -> Set<String> {
    var names: Set<String> = []
    let (replaced, preloaded) = (swipes.filter(\.isReplaced), swipes.filter(\.isPreloaded))
    if let shift = replaced.compactMap({ $0.lacking(\.recorded.firstFrame, \.firstFrame) }).median {
      names.insert("present_ms")
      add(shift, to: starts.map(\.path), of: &costs)
    }
    let plays = replaced.filter { $0.visit.secondAt != nil }.compactMap { swipe in
      swipe.lacking(\.recorded.secondFrame, \.secondFrame).flatMap { second in
        swipe.lacking(\.recorded.firstFrame, \.firstFrame).map { second - $0 }
      }
    }
    if let shift = plays.median {
      names.insert("play_ms")
      add(shift, to: [\.playMs], of: &costs)
    }
    if let shift = preloaded.compactMap({ $0.lacking(\.recorded.firstFrame, \.firstFrame) }).median {
      names.insert("swap_ms")
      add(shift, to: [\.swapMs], of: &costs)
    }
    return names
  }

  /// Adds milliseconds to the first of some costs. Fewer are taken from one after the other, until none is left.
  private static func add(
    _ milliseconds: Double, to paths: [WritableKeyPath<PlayerModel.Costs, Double>],
    of costs: inout PlayerModel.Costs
  ) {
    var rest = (milliseconds * 10).rounded() / 10
    for path in paths where rest != 0 {
      let value = max(0, costs[keyPath: path] + rest)
      rest -= value - costs[keyPath: path]
      costs[keyPath: path] = (value * 10).rounded() / 10
      // Rounding.
      if abs(rest) < 0.05 { rest = 0 }
    }
  }
}

extension PredictedSwipe {
  /// The milliseconds by which a prediction is too short; nil if one of the two is not there.
  fileprivate func lacking(
    _ measured: KeyPath<PredictedSwipe, Duration?>, _ predicted: KeyPath<PredictedSwipe, Duration?>
  ) -> Double? {
    self[keyPath: measured].flatMap { measured in
      self[keyPath: predicted].map { (measured - $0) / .milliseconds(1) }
    }
  }
}
