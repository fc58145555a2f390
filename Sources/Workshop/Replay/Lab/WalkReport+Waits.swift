internal import ReelCore

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
