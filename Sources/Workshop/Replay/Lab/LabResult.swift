internal import ReelCore
internal import ReelPlayback

/// What was measured on one walk of a lab.
package struct LabResult: Sendable, Hashable, Codable {
  /// A figure of a walk; lower is better except for ``meanBitRate``.
  ///
  /// Times are in milliseconds, sizes in bytes, rates in bits per second, shares from 0 to 1.
  package enum Figure: String, Sendable, Hashable, Codable, CodingKeyRepresentable, CaseIterable {
    case firstFrameP50 = "first_frame_p50"
    case firstFrameP95 = "first_frame_p95"
    case firstFrameP99 = "first_frame_p99"
    case secondFrameP50 = "second_frame_p50"
    case secondFrameP95 = "second_frame_p95"
    case secondFrameP99 = "second_frame_p99"
    case secondFrameMean = "second_frame_mean"
    case secondFrameOver100ms = "second_frame_over_100ms"
    case secondFrameOver1s = "second_frame_over_1s"
    case rebufferingRatio = "rebuffering_ratio"
    case stallCount = "stall_count"
    case fetchedByteCount = "fetched_bytes"
    case wastedByteCount = "wasted_bytes"
    case meanBitRate = "mean_bit_rate"
    case rungSwitchCount = "rung_switches"
    case peakMemory = "peak_memory"
    case decodedFrameCount = "decoded_frames"
    case abandonedSwipeCount = "abandoned_swipes"
    case failedItemCount = "failed_items"
    /// The mean wait of a swipe for manifests, playlists and keys; this and the following parts of the wait for the first
    /// frame add up to its mean.
    case waitManifest = "wait_manifest"
    case waitInitialization = "wait_initialization"
    /// For the beginning of a segment: round trips, and connections that had to be opened.
    case waitAnswer = "wait_answer"
    /// For the bytes of segments.
    case waitTransfer = "wait_transfer"
    case waitDecode = "wait_decode"
    /// For other downloads, parsing and demuxing.
    case waitPreparing = "wait_preparing"
    /// From the first frame to the second.
    case waitSecondFrame = "wait_second_frame"
  }

  package var run: LabRun
  /// Only what the walk has: for instance no bit rate without a ladder.
  package var figures: [Figure: Double]
  /// Why the walk failed; it then has no figures.
  package var error: String?

  package init(run: LabRun, figures: [Figure: Double], error: String? = nil) {
    self.run = run
    self.figures = figures
    self.error = error
  }
}

extension LabResult {
  /// The figures of a walk.
  package init(run: LabRun, report: WalkReport) {
    let totals = report.totals
    var figures: [Figure: Double] = [:]
    if let waits = totals.firstFrame.all {
      figures[.firstFrameP50] = waits.p50.milliseconds
      figures[.firstFrameP95] = waits.p95.milliseconds
      figures[.firstFrameP99] = waits.p99.milliseconds
    }
    if let waits = totals.secondFrame.all {
      figures[.secondFrameP50] = waits.p50.milliseconds
      figures[.secondFrameP95] = waits.p95.milliseconds
      figures[.secondFrameP99] = waits.p99.milliseconds
      let sum = report.swipes.compactMap(\.countedSecondFrame).reduce(.zero, +)
      figures[.secondFrameMean] = (sum / waits.count).milliseconds
      figures[.secondFrameOver100ms] = waits.shareOver100ms
      figures[.secondFrameOver1s] = waits.shareOver1s
    }
    figures[.rebufferingRatio] = totals.rebufferingRatio
    figures[.stallCount] = Double(totals.stallCount)
    figures[.fetchedByteCount] = Double(totals.fetchedByteCount)
    figures[.wastedByteCount] = Double(totals.unshownByteCount)
    figures[.meanBitRate] = totals.meanBitRate
    figures[.rungSwitchCount] = Double(totals.rungSwitchCount)
    figures[.peakMemory] = totals.poolHighWaterByteCount.map(Double.init)
    figures[.decodedFrameCount] = Double(totals.decodedFrameCount)
    figures[.abandonedSwipeCount] = Double(totals.abandonedSwipeCount)
    figures[.failedItemCount] = Double(totals.failedItemCount)
    figures.merge(report.waitFigures) { $1 }
    self.init(run: run, figures: figures)
  }
}

/// The figures of one pool's walks, in the order of the pairs that the walks belong to.
struct LabSamples: Sendable {
  static let figures = LabResult.Figure.allCases

  /// The numbers of the pairs, ascending.
  private(set) var pairs: [Int] = []
  /// The number of walks that failed.
  private(set) var failedCount = 0
  /// For each walk, all figures in the order of `figures`; one that the walk lacks is not a number.
  private var values: [Double] = []

  mutating func append(_ result: LabResult, pair: Int) {
    pairs.append(pair)
    if result.error != nil { failedCount += 1 }
    for figure in Self.figures {
      let value = result.figures[figure] ?? .nan
      values.append(value.isFinite ? value : .nan)
    }
  }

  /// The figure of all walks that have it, in the order of pairs.
  func values(of figure: LabResult.Figure) -> [Double] {
    guard let column = Self.figures.firstIndex(of: figure) else { return [] }
    return stride(from: column, to: values.count, by: Self.figures.count).map { values[$0] }
      .filter { !$0.isNaN }
  }

  /// The places, here and there, of the walks of the same pairs.
  func matches(in other: LabSamples) -> [(own: Int, other: Int)] {
    var matches: [(own: Int, other: Int)] = []
    var (own, there) = (0, 0)
    while own < pairs.count, there < other.pairs.count {
      if pairs[own] == other.pairs[there] { matches.append((own, there)) }
      let isBehind = pairs[own] <= other.pairs[there]
      if pairs[own] >= other.pairs[there] { there += 1 }
      if isBehind { own += 1 }
    }
    return matches
  }

  /// The value at a place; not a number if the walk lacks it.
  func value(at place: Int, column: Int) -> Double { values[place * Self.figures.count + column] }
}

extension WalkReport {
  /// What the swipes that count waited for, by mean in milliseconds: the figures from ``LabResult/Figure/waitManifest`` on.
  ///
  /// Empty if no swipe was counted. Waits that were given up count with their duration.
  package var waitFigures: [LabResult.Figure: Double] {
    let counted = swipes.filter(\.isCounted)
    guard !counted.isEmpty else { return [:] }
    var sums: [LabResult.Figure: Duration] = [:]
    for figure in LabResult.Figure.waits { sums[figure] = .zero }
    for swipe in counted {
      for part in swipe.waitParts {
        sums[LabResult.Figure(waitPart: part.stage), default: .zero] += part.duration
      }
      guard let first = swipe.countedFirstFrame, let second = swipe.countedSecondFrame else { continue }
      sums[.waitSecondFrame, default: .zero] += max(second - first, .zero)
    }
    return sums.mapValues { $0.milliseconds / Double(counted.count) }
  }
}

extension LabResult.Figure {
  /// The parts of a wait for the second frame.
  static let waits: [LabResult.Figure] = [
    .waitManifest, .waitInitialization, .waitAnswer, .waitTransfer, .waitDecode, .waitPreparing,
    .waitSecondFrame,
  ]

  /// The figure for a part as `WaitRecorder` names it.
  fileprivate init(waitPart name: String) {
    let purpose = name.prefix { $0 != " " }
    self =
      switch purpose {
      case "source", "manifest", "key", "clock": .waitManifest
      case "initialization": .waitInitialization
      case "segment", "resource": name.hasSuffix("transfer") ? .waitTransfer : .waitAnswer
      case "decode", "show": .waitDecode
      default: .waitPreparing
      }
  }
}
