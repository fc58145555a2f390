internal import Foundation
internal import ReelCore
package import ReelModels
package import ReelSimulation

/// What one player did in a recording, in the terms in which a model can do it again.
package struct RecordedWalk: Sendable, Hashable {
  /// A swipe, and how long the viewer waited after it.
  package struct Swipe: Sendable, Hashable {
    /// Its number; 0 is the first item, which is no swipe.
    package let number: Int
    /// The index of the item in the recording.
    package let item: Int
    /// The end of the drag, counted from that of number 0.
    package fileprivate(set) var time: Duration
    /// From the end of the drag on; nil if the frame was not shown.
    package let firstFrame: Duration?
    package let secondFrame: Duration?
    package let stallCount: Int
    package let stallDuration: Duration
    /// True if the item had a decoded frame at the end of the drag; nil if the player does not say.
    package let isReady: Bool?
    package let failure: String?
    /// The time until the item was left.
    fileprivate let left: Duration?
  }

  package let playback: String
  /// The player, such as `hls.js 1.5.0`, and the program or device that it ran in, as it reported them.
  package let player: String?
  package let agent: String?
  /// The number of items that it loaded ahead; nil for those of the model.
  package var preloadedCount: Int?
  /// In the order of their times. The first one begins the walk.
  package fileprivate(set) var swipes: [Swipe] = []

  /// The name of the shipped model that stands for the player; nil for a player without one.
  package var modelName: String? {
    let word = (player ?? "").lowercased().prefix { $0 != " " && $0 != "/" }
    if PlayerModel.shippedNames.contains(String(word)) { return String(word) }
    guard word == "native", let agent else { return nil }
    return agent.contains("Chrome/") ? "chromium" : agent.contains("AppleWebKit") ? "avplayer" : nil
  }

  /// The time of the first swipe and of the end, on the server's clock.
  package fileprivate(set) var span: ClosedRange<Double>?

  /// The end of the last visit.
  package var end: Duration {
    guard let last = swipes.last else { return .zero }
    let waited = max(last.firstFrame ?? .zero, last.secondFrame ?? .zero)
    return last.time + max(last.left ?? waited + .seconds(1), .milliseconds(1))
  }

  /// The media of an item that the walk can reach with a model, in seconds.
  package func reach(by model: PlayerModel) -> Double {
    let times = swipes.map(\.time) + [end]
    let longest = zip(times.dropFirst(), times).map { $0 - $1 }.max() ?? .zero
    let forward = max(model.buffer.forwardS, model.preload.items.map(\.forwardS).max() ?? 0)
    return min(longest / .seconds(1) + forward, ModelledItems.reachLimit)
  }

  /// Walks with a model what the player walked.
  ///
  /// - Parameter items: The facts of the items of the recording; nil for one that can't be read.
  package func predictions(
    by model: PlayerModel, items: [ItemFacts?], link: LinkSpec
  ) -> [PredictedSwipe] {
    guard !swipes.isEmpty, !items.isEmpty else { return [] }
    let positions = positions(itemCount: items.count)
    var model = preloading(model)
    // A page has other URLs for each visit; only who goes back finds what was loaded.
    if Set(positions).count == positions.count { model.cache = false }
    let ahead = model.preload.items.map(\.offset).max() ?? 0
    let first = positions[0] - swipes[0].item
    let feed = (0...(positions.max() ?? 0) + max(ahead, 0)).map { position -> ItemFacts? in
      let facts = items[((position - first) % items.count + items.count) % items.count]
      return facts.flatMap { model.start.formats.contains($0.format) ? $0 : nil }
    }
    let walk = ModelledWalk(
      model, items: feed, link: link,
      swipes: zip(swipes, positions).map { .init(to: $1, draggedAt: $0.time, settledAt: $0.time) }, end: end)
    return zip(swipes, walk.run().visits).map { swipe, visit in
      PredictedSwipe(recorded: swipe, visit: visit, isPlayable: feed[visit.swipe.item] != nil)
    }
  }

  // MARK: - Private

  /// The model with as many items ahead as the player had. They begin when the current item is on show.
  private func preloading(_ model: PlayerModel) -> PlayerModel {
    guard let preloadedCount else { return model }
    var model = model
    let forward = model.preload.items.first { $0.offset > 0 }?.forwardS ?? model.buffer.forwardS
    model.preload.items = (1..<preloadedCount + 1).map { .init(offset: $0, forwardS: forward, after: 0) }
    model.preload.players = preloadedCount + 1
    return model
  }

  /// The place of each swipe's item in a feed that repeats the items without end: the nearest one, rather ahead.
  private func positions(itemCount: Int) -> [Int] {
    guard let first = swipes.first else { return [] }
    var positions = [first.item]
    for (swipe, last) in zip(swipes.dropFirst(), swipes) {
      let ahead = (swipe.item - last.item + itemCount) % itemCount
      let step = ahead == 0 ? itemCount : ahead * 2 > itemCount ? ahead - itemCount : ahead
      positions.append(positions[positions.count - 1] + step)
    }
    let least = min(positions.min() ?? 0, 0)
    return positions.map { $0 - least }
  }
}

/// A swipe as it was, and as a model walks it.
package struct PredictedSwipe: Sendable {
  package let recorded: RecordedWalk.Swipe
  package let visit: ModelledWalk.Visit
  /// False if the item can't be read, or the model does not play it.
  package let isPlayable: Bool

  /// The wait for the first frame; nil for an item that is not played.
  package var firstFrame: Duration? { isPlayable ? (visit.shownAt ?? visit.leftAt) - recorded.time : nil }
  package var secondFrame: Duration? { isPlayable ? (visit.secondAt ?? visit.leftAt) - recorded.time : nil }
  /// True if the item is left before its first frame: the wait is then a lower bound.
  package var isBound: Bool { isPlayable && visit.shownAt == nil }
  package var stallDuration: Duration { visit.stalls.reduce(.zero) { $0 + $1.duration } }

  /// True if measurement and prediction can be compared.
  package var isUsable: Bool { recorded.time > .zero && recorded.firstFrame != nil && isPlayable }

  /// True if the swipe began to load the item.
  var isReplaced: Bool { visit.found == .nothing && recorded.isReady != true }
  /// True if all was there that the first frame needs.
  var isPreloaded: Bool {
    (visit.mediaReadyAt ?? .seconds(Int64.max)) <= recorded.time && recorded.isReady != false
  }
}

/// Measured and predicted waits of the same swipes.
package struct WaitComparison: Sendable {
  package let measured: LatencySummary
  package let predicted: LatencySummary
  /// The mean of the differences, without their signs.
  package let meanError: Duration

  /// The waits of those swipes that can be compared; nil without any.
  ///
  /// - Parameter frame: Returns the wait of a swipe as it was measured, and as it is predicted.
  private init?(
    _ swipes: [PredictedSwipe], frame: (PredictedSwipe) -> (measured: Duration?, predicted: Duration?)
  ) {
    let pairs = swipes.filter(\.isUsable).compactMap { swipe in
      let (measured, predicted) = frame(swipe)
      return measured.flatMap { measured in predicted.map { (measured: measured, predicted: $0) } }
    }
    guard let measured = LatencySummary(pairs.map(\.measured)),
      let predicted = LatencySummary(pairs.map(\.predicted))
    else { return nil }
    (self.measured, self.predicted) = (measured, predicted)
    meanError = pairs.reduce(.zero) { $0 + ($1.measured - $1.predicted).magnitude } / pairs.count
  }

  package static func firstFrames(of swipes: [PredictedSwipe]) -> WaitComparison? {
    WaitComparison(swipes) { ($0.recorded.firstFrame, $0.firstFrame) }
  }

  package static func secondFrames(of swipes: [PredictedSwipe]) -> WaitComparison? {
    WaitComparison(swipes) { ($0.recorded.secondFrame, $0.secondFrame) }
  }
}

extension Duration {
  fileprivate var magnitude: Duration { self < .zero ? .zero - self : self }
}

// MARK: - Reading

/// The walks of a recording, one for each playback.
package struct RecordedWalks: Sendable {
  /// In the order in which they began.
  package private(set) var walks: [RecordedWalk] = []
  /// What a user has to know about the recording, a line each.
  package private(set) var notes: [String] = []
  /// The link as the requests show it; nil if it was not asked for, or if they don't.
  package let estimate: LinkEstimate?

  /// More would say nothing new, and take more memory.
  private static let swipeLimit = 20_000
  private static let walkLimit = 10_000

  /// Reads a recording to its end.
  ///
  /// - Parameter estimatesLink: True to look at the requests, which takes much more time.
  /// - Throws: `ReelError` of a line that can't be read, or `CancellationError`.
  package init(_ recording: PlayerRecording, estimatesLink: Bool) throws {
    let items = Dictionary(
      recording.run.items.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
    var places: [String: Int] = [:]
    var estimator = LinkEstimate.Maker()
    /// The times of the swipes of each walk, on the clock of the player and on that of the server.
    var times: [[(player: Double, server: Double)]] = []
    var swipeCount = 0
    var (unknownCount, unknown) = (0, "")
    while swipeCount < Self.swipeLimit,
      let line = try recording.next(isWithoutRequests: !estimatesLink || estimator.isFull)
    {
      try Task.checkCancellation()
      switch line {
      case .request(let request): estimator.add(request)
      case .report(let report, _) where report.kind == .start:
        guard places[report.playback] == nil, walks.count < Self.walkLimit else { continue }
        places[report.playback] = walks.count
        walks.append(
          RecordedWalk(
            playback: report.playback, player: report.player, agent: report.agent,
            preloadedCount: report.preload))
        times.append([])
      case .report(let report, let serverMs) where report.kind == .swipe:
        guard let place = places[report.playback], let item = items[report.item ?? ""] else {
          unknownCount += 1
          unknown = report.playback
          continue
        }
        swipeCount += 1
        let playerMs = report.swipeMs ?? 0
        walks[place].swipes.append(Self.swipe(report, item: item, number: walks[place].swipes.count))
        times[place].append((playerMs, serverMs ?? playerMs))
      case .report: continue
      }
    }
    estimate = estimatesLink ? estimator.estimate : nil
    for (place, times) in times.enumerated() {
      let isApart = recording.clockRunsApart(of: walks[place].playback)
      walks[place].put(at: times.map { isApart ? $0.server : $0.player })
      if let first = times.map(\.server).min() {
        walks[place].span = first...(first + walks[place].end / .milliseconds(1))
      }
    }
    notes = recording.notes
    if swipeCount == Self.swipeLimit {
      notes.append("a long recording: its first \(Self.swipeLimit) swipes are used")
    }
    if unknownCount > 0 {
      let count = unknownCount.counted("report")
      notes.append("\(count) of unknown playbacks, such as \(unknown), or of unknown items: left out")
    }
  }

  private static func swipe(_ report: PlayerReport, item: Int, number: Int) -> RecordedWalk.Swipe {
    let stalls = report.stalls ?? []
    return RecordedWalk.Swipe(
      number: report.number ?? number, item: item, time: .zero,
      firstFrame: report.firstFrameMs.map { .milliseconds($0) },
      secondFrame: report.secondFrameMs.map { .milliseconds($0) }, stallCount: stalls.count,
      stallDuration: .milliseconds(stalls.reduce(0) { $0 + $1.durationMs }), isReady: report.ready,
      failure: report.failure, left: report.leftMs.map { .milliseconds($0) })
  }
}

extension RecordedWalk {
  /// Sets the times of the swipes and puts them in order, without those that were reported twice.
  fileprivate mutating func put(at times: [Double]) {
    let order = times.indices.sorted {
      (times[$0], swipes[$0].number, $0) < (times[$1], swipes[$1].number, $1)
    }
    var (ordered, last) = ([Swipe](), -Double.infinity)
    for index in order {
      var swipe = swipes[index]
      if times[index] == last, ordered.last?.item == swipe.item { continue }
      last = times[index]
      swipe.time = .milliseconds(last - times[order[0]])
      ordered.append(swipe)
    }
    swipes = ordered
  }
}
