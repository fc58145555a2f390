import ReelCore
import ReelLab
import ReelModels
import ReelPool
import ReelSimulation

/// Something that `reel feed --like` prints.
protocol LikeOutput: Encodable {
  var text: String { get }
}

/// What a player did in a recording, and what a model predicts.
struct LikeReport: LikeOutput {
  struct Link: Sendable {
    enum Origin: String, Sendable { case option, recording, estimate }

    let spec: LinkSpec
    let text: String
    let origin: Origin
  }

  let walk: ModelledRecording
  let link: Link
  let itemNames: [String]
  let notes: [String]
  let swipes: [PredictedSwipe]

  private var failedCount: Int {
    swipes.dropFirst().count { $0.recorded.firstFrame == nil }
  }

  var text: String { ([headline] + table.lines + sums).joined(separator: "\n") }

  private var headline: String {
    let recorded = walk.recorded
    let player = recorded.player.map { " for \($0)" } ?? ""
    let ahead = recorded.preloadedCount.map { $0 == 0 ? "nothing" : $0.counted("item") + " ahead" }
    let text = "\(link.text) (\(link.spec.modelledWords))"
    let link =
      switch link.origin {
      case .option: text
      case .recording: "\(text), the link of the recording"
      case .estimate: "\(text), estimated from its requests"
      }
    return "\(walk.model.title)\(player), preloading \(ahead ?? "as the model"), on \(link): "
      + "\((swipes.count - 1).counted("swipe")) of playback \(recorded.playback)"
  }

  private var table: Table {
    var table = Table([.right, .left, .left], indentation: 2)
    table.add([
      "swipe", "item", "loaded", "first frame", "predicted", "second", "predicted", "stalled", "predicted",
    ])
    for swipe in swipes {
      let recorded = swipe.recorded
      let bound = swipe.isBound ? "> " : ""
      let first =
        recorded.firstFrame.map(DurationText.readable) ?? (recorded.failure == nil ? "left" : "failed")
      let seconds = [recorded.secondFrame, swipe.isBound ? nil : swipe.secondFrame].map {
        $0.map(DurationText.readable) ?? "-"
      }
      let stalls = [recorded.stallDuration, swipe.stallDuration].map {
        $0 == .zero ? "-" : DurationText.readable($0)
      }
      table.add([
        "\(recorded.number)", itemNames[recorded.item], swipe.visit.found.words,
        first, swipe.firstFrame.map { bound + DurationText.readable($0) } ?? "-", seconds[0], seconds[1],
        stalls[0], stalls[1],
      ])
    }
    return table
  }

  private var sums: [String] {
    var lines = WaitComparison.table([("predicted", swipes)])
    let stalls = [
      swipes.dropFirst().map { ($0.recorded.stallCount, $0.recorded.stallDuration) },
      swipes.dropFirst().map { ($0.visit.stalls.count, $0.stallDuration) },
    ].map { stalls in
      "\(stalls.reduce(0) { $0 + $1.0 }), \(DurationText.readable(stalls.reduce(.zero) { $0 + $1.1 }))"
    }
    lines.append("  stalls: \(stalls[0]); predicted: \(stalls[1])")
    if failedCount > 0 {
      lines.append("  without a first frame: \(failedCount.counted("swipe")), not compared")
    }
    let unplayable = swipes.dropFirst().count { !$0.isPlayable }
    if unplayable > 0 {
      lines.append(
        "  not predicted: \(unplayable.counted("swipe")) to items that can't be read, or that \(walk.model.name) does not play"
      )
    }
    let bounds = swipes.count { $0.isUsable && $0.isBound }
    if bounds > 0 {
      lines.append(
        "  left before the predicted frame: \(bounds.counted("swipe")), counted with the time until then")
    }
    return lines
  }

  func encode(to encoder: any Encoder) throws {
    let recorded = walk.recorded
    try encoder.encode([
      "playback": recorded.playback, "recorded_player": recorded.player, "player": walk.model.title,
      "preload": recorded.preloadedCount, "link": link.text, "link_origin": link.origin.rawValue,
      "bits_per_second": link.spec.bitsPerSecond, "round_trip_ms": link.spec.roundTripTime,
      "swipes": swipes.map(fields), "first_frame": WaitComparison.firstFrames(of: swipes),
      "second_frame": WaitComparison.secondFrames(of: swipes), "failed": failedCount, "notes": notes,
    ])
  }

  private func fields(of swipe: PredictedSwipe) -> JSONFields {
    let recorded = swipe.recorded
    let predicted = Self.waits(
      swipe.isBound ? nil : swipe.firstFrame, swipe.visit.secondAt == nil ? nil : swipe.secondFrame,
      swipe.visit.stalls.count, swipe.stallDuration)
    return [
      "number": recorded.number, "item": itemNames[recorded.item], "time_ms": recorded.time,
      "loaded": swipe.visit.found.words, "failure": recorded.failure, "predicted": predicted,
      "measured": Self.waits(
        recorded.firstFrame, recorded.secondFrame, recorded.stallCount, recorded.stallDuration),
    ]
  }

  private static func waits(
    _ first: Duration?, _ second: Duration?, _ stallCount: Int, _ stalled: Duration
  ) -> JSONFields {
    ["first_frame_ms": first, "second_frame_ms": second, "stalls": stallCount, "stalled_ms": stalled]
  }
}

/// The costs that were fitted, and how well they work on other swipes.
struct FitReport: LikeOutput {
  let fit: ModelFit
  let path: String

  var text: String {
    let costs = fit.costs.map { cost in
      "\(cost.name) \(cost.before.formatted(places: 1)) → \(cost.after.formatted(places: 1))"
    }
    var lines = [
      "\(path): \(fit.model.name) fitted on \(fit.usedCount.counted("swipe")): \(costs.joined(separator: ", "))"
    ]
    lines += fit.omissions.map { "  not fitted: \($0)" }
    lines.append("  on the \(fit.after.count.counted("swipe")) left out:")
    lines += WaitComparison.table([("before", fit.before), ("fitted", fit.after)])
    return lines.joined(separator: "\n")
  }

  func encode(to encoder: any Encoder) throws {
    func waits(_ swipes: [PredictedSwipe]) -> JSONFields {
      [
        "first_frame": WaitComparison.firstFrames(of: swipes),
        "second_frame": WaitComparison.secondFrames(of: swipes),
      ]
    }
    try encoder.encode([
      "fit": path, "player": fit.model.name, "used": fit.usedCount, "left_out": fit.after.count,
      "costs": fit.costs.map { ["name": $0.name, "before": $0.before, "after": $0.after] as JSONFields },
      "not_fitted": fit.omissions, "before": waits(fit.before), "after": waits(fit.after),
    ])
  }
}

extension WaitComparison: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode(["measured": measured, "predicted": predicted, "mean_error_ms": meanError])
  }

  /// Measured waits of swipes, and predictions of them.
  fileprivate static func table(_ predictions: [(name: String, swipes: [PredictedSwipe])]) -> [String] {
    var table = Table([.left, .left], indentation: 2)
    table.add(["", "", "swipes", "p50", "p95", "mean error"])
    let frames: [(String, ([PredictedSwipe]) -> WaitComparison?)] = [
      ("first frame", firstFrames), ("second frame", secondFrames),
    ]
    for (frame, compare) in frames {
      for (place, (name, swipes)) in predictions.enumerated() {
        guard let waits = compare(swipes) else { continue }
        if place == 0 {
          table.add([
            frame, "measured", "\(waits.measured.count)", DurationText.readable(waits.measured.p50),
            DurationText.readable(waits.measured.p95), "",
          ])
        }
        table.add([
          "", name, "\(waits.predicted.count)", DurationText.readable(waits.predicted.p50),
          DurationText.readable(waits.predicted.p95), DurationText.readable(waits.meanError),
        ])
      }
    }
    return table.isEmpty ? ["  no swipe has both a measured and a predicted first frame"] : table.lines
  }
}

extension ModelledWalk.Stage {
  fileprivate var words: String {
    switch self {
    case .nothing: "nothing"
    case .onDisk: "on disk"
    case .opened: "a part"
    case .decoded: "first frame"
    case .buffered: "buffer"
    }
  }
}
