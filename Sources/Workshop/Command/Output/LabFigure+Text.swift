import Foundation
import ReelCore
import ReelPool
import ReelReplay

extension LabResult.Figure {
  /// What a figure is measured in.
  enum Unit: Sendable {
    case time, share, size, bitRate, number
  }

  var unit: Unit {
    switch self {
    case .firstFrameP50, .firstFrameP95, .firstFrameP99, .secondFrameP50, .secondFrameP95, .secondFrameP99,
      .secondFrameMean, .waitManifest, .waitInitialization, .waitAnswer, .waitTransfer,
      .waitDecode, .waitPreparing, .waitSecondFrame:
      .time
    case .secondFrameOver100ms, .secondFrameOver1s, .rebufferingRatio: .share
    case .fetchedByteCount, .wastedByteCount, .peakMemory: .size
    case .meanBitRate: .bitRate
    case .stallCount, .rungSwitchCount, .decodedFrameCount, .abandonedSwipeCount, .failedItemCount: .number
    }
  }

  /// A name for people.
  var title: String {
    switch self {
    case .firstFrameP50: "first frame, p50"
    case .firstFrameP95: "first frame, p95"
    case .firstFrameP99: "first frame, p99"
    case .secondFrameP50: "second frame, p50"
    case .secondFrameP95: "second frame, p95"
    case .secondFrameP99: "second frame, p99"
    case .secondFrameMean: "second frame, mean"
    case .secondFrameOver100ms: "second frame over 100 ms"
    case .secondFrameOver1s: "second frame over 1 s"
    case .rebufferingRatio: "rebuffering"
    case .stallCount: "stalls"
    case .fetchedByteCount: "fetched"
    case .wastedByteCount: "wasted bytes"
    case .meanBitRate: "mean rung"
    case .rungSwitchCount: "rung switches"
    case .peakMemory: "peak memory"
    case .decodedFrameCount: "decoded frames"
    case .abandonedSwipeCount: "abandoned swipes"
    case .failedItemCount: "failed items"
    case .waitManifest: "wait for manifests"
    case .waitInitialization: "wait for initialization segments"
    case .waitAnswer: "wait for responses"
    case .waitTransfer: "wait for transfers"
    case .waitDecode: "wait for decoding"
    case .waitPreparing: "wait for preparing"
    case .waitSecondFrame: "first to second frame"
    }
  }

  /// The unit in which ``plain(_:)`` writes the figure; empty for none.
  var plainUnit: String {
    switch unit {
    case .time: "ms"
    case .share: "%"
    case .size: "MB"
    case .bitRate: "Mbit/s"
    case .number: ""
    }
  }

  /// One of ``plainUnit``.
  var scale: Double {
    switch unit {
    case .time, .number: 1
    case .share: 0.01
    case .size, .bitRate: 1e6
    }
  }

  /// A value with its unit: `93.2 ms`, `3.5 MB`, `97.5 %`.
  func text(_ value: Double) -> String {
    let plain = plain(value)
    return plainUnit.isEmpty ? plain : "\(plain) \(plainUnit)"
  }

  /// A value with its unit and as many decimals as tell it from values that are `step` apart.
  func text(_ value: Double, step: Double) -> String {
    let digits = step > 0 ? Int((-log10(step / scale)).rounded(.up)) : 0
    let plain = (value / scale).formatted(places: min(max(digits, 0), 6))
    return plainUnit.isEmpty ? plain : "\(plain) \(plainUnit)"
  }

  /// A value in ``plainUnit``, with fewer decimals for larger values.
  func plain(_ value: Double) -> String { plain([value])[0] }

  /// Values in ``plainUnit``, with as many decimals as suit the largest.
  ///
  /// - Parameter moreDecimals: How many more there are.
  func plain(_ values: [Double], moreDecimals: Int = 0) -> [String] {
    let scaled = values.map { $0 / scale }
    let most = scaled.map(\.magnitude).max() ?? 0
    // A rate's second decimal is 10 kbit/s.
    let places = (most >= 100 ? 0 : most >= 10 || unit == .time ? 1 : 2) + moreDecimals
    return scaled.map { value in
      let text = value.formatted(places: places)
      return text == "-0" ? "0" : text
    }
  }

  /// A difference with its interval, in ``plainUnit``: `-501 [-640, -372]`; without an interval, `-501`.
  func plain(_ difference: LabDifference.Figure) -> String {
    guard let interval = difference.interval else { return plain(difference.mean) }
    let values = [difference.mean, interval.lower, interval.upper]
    var texts = plain(values)
    // An interval that excludes 0 does not look as if it ended there.
    for more in 1...3 where interval.excludesZero && texts.contains("0") {
      texts = plain(values, moreDecimals: more)
    }
    return "\(texts[0]) [\(texts[1]), \(texts[2])]"
  }
}

extension LabSummary {
  /// The name of a pool: its policy, after the number of slots if the lab has several.
  func name(of pool: LabPool) -> String {
    let policy = Redaction.clean(pool.policy).printable
    return dimensions.slotCounts.count > 1 ? "\(pool.slotCount) \(policy)" : policy
  }

  /// The name of the difference of two pools: `5 adaptive - 3 adaptive`.
  func name(of difference: LabDifference, minus: String) -> String {
    "\(name(of: difference.pool)) \(minus) \(name(of: difference.baseline))"
  }

  /// The name of a group: those values that not all walks of the lab have.
  ///
  /// - Parameter slots: False to leave out the number of slots.
  func name(of key: LabGroup.Key, slots: Bool = true) -> String {
    var parts: [String] = []
    func add(_ value: String?, _ values: [String]) {
      if let value, values.count > 1 { parts.append(Redaction.clean(value).printable) }
    }
    add(key.feed, dimensions.feeds)
    add(key.linkGroup, dimensions.linkGroups)
    add(key.viewer, dimensions.viewers)
    add(key.device, dimensions.devices)
    if slots, let count = key.slotCount, dimensions.slotCounts.count > 1 {
      parts.append(count.counted("slot"))
    }
    return parts.isEmpty ? "all walks" : parts.joined(separator: ", ")
  }

  /// What was run: `168 walks: 1 feed, 16 links in 4 groups, ...`.
  var extent: String {
    let slots = dimensions.slotCounts.map(String.init).joined(separator: " and ")
    let links = dimensions.links.count.counted("link")
    let groups = dimensions.linkGroups.count
    let parts = [
      dimensions.feeds.count.counted("feed"),
      groups == dimensions.links.count ? links : "\(links) in \(groups.counted("group"))",
      dimensions.viewers.count.counted("viewer"), dimensions.devices.count.counted("device"),
      dimensions.slotCounts == [1] ? "1 slot" : "\(slots) slots",
      dimensions.policies.count.counted("policy", "policies"),
      dimensions.seeds.count.counted("seed"),
    ]
    return "\(runCount.counted("walk")): \(parts.joined(separator: ", "))"
  }
}
