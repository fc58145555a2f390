package import ReelPlayback

/// What ``WalkFigures`` are computed from: a walk, and the waits of its swipes.
///
/// Waits and hits cover the swipes that count (``SwipeRecord/isCounted``): not the start of the walk, items passed by
/// in a burst, and items that failed before their first frame. A wait that the viewer gave up counts with its duration
/// until then. Stalls, watched time and rungs cover all items.
package struct WalkTotals: Sendable, Hashable {
  let report: WalkReport
  /// The swipes that count.
  package let counted: [SwipeRecord]
  /// The waits from the settle to the first frame.
  package let firstFrame: LatencyTable
  /// The waits from the settle to the second frame.
  package let secondFrame: LatencyTable
  /// The sums of what the swipes that count waited for, by purpose: `manifest`, `initialization`, `answer`, `transfer`,
  /// `decode`, `preparing` until the first frame, and `second_frame` from there on.
  let waits: [String: Duration]

  package init(_ report: WalkReport) {
    self.report = report
    counted = report.swipes.filter(\.isCounted)
    firstFrame = LatencyTable(counted, measured: \.timeToFirstFrame, counted: \.countedFirstFrame)
    secondFrame = LatencyTable(counted, measured: \.timeToSecondFrame, counted: \.countedSecondFrame)
    var waits: [String: Duration] = [:]
    for swipe in counted {
      for part in swipe.waitParts { waits[Self.purpose(of: part.stage), default: .zero] += part.duration }
      guard let first = swipe.countedFirstFrame, let second = swipe.countedSecondFrame else { continue }
      waits["second_frame", default: .zero] += max(second - first, .zero)
    }
    self.waits = waits
  }

  /// The number of all swipes, including those within bursts.
  package var swipeCount: Int { report.swipes.count { $0.kind != .start } }

  /// Returns the share of counted swipes that found the stage reached, from 0 to 1; `nil` if no swipe was
  /// counted.
  package func hitRatio(_ stage: PreloadStage = .firstFrame) -> Double? {
    counted.isEmpty ? nil : Double(counted.count { $0.stage >= stage }) / Double(counted.count)
  }

  var stallDuration: Duration { report.swipes.reduce(.zero) { $0 + $1.stallDuration } }

  /// The time for which items were looked at, from their first frames until they were left, including stalls.
  var watchedDuration: Duration {
    report.swipes.reduce(.zero) { sum, swipe in
      sum + (swipe.timeToFirstFrame.map { max(.zero, swipe.watched - $0) } ?? .zero)
    }
  }

  /// The mean of the stated bit rates of the shown frames, weighted by their media time, in bits per second;
  /// `nil` if no frame of a rung with a stated bit rate was shown.
  var meanBitRate: Double? {
    let rated = report.swipes.flatMap(\.rungs).compactMap { rung in
      rung.bitRate.map { (bitRate: $0, duration: rung.duration) }
    }
    let seconds = rated.reduce(Duration.zero) { $0 + $1.duration } / .seconds(1)
    let bits = rated.reduce(0) { $0 + Double($1.bitRate) * ($1.duration / .seconds(1)) }
    return seconds > 0 ? bits / seconds : nil
  }

  // MARK: - Private

  /// The name of a wait in the figures, for the name that `WaitRecorder` uses.
  private static func purpose(of wait: String) -> String {
    switch wait.prefix(while: { $0 != " " }) {
    case "source", "manifest", "key", "clock": "manifest"
    case "initialization": "initialization"
    case "segment", "resource": wait.hasSuffix("transfer") ? "transfer" : "answer"
    case "decode", "show": "decode"
    default: "preparing"
    }
  }
}
