package import ReelModels
package import ReelSimulation

/// What `check` reads of a source, and how it judges.
package struct CheckOptions: Sendable {
  /// The segments of each rung that are read.
  package enum Sample: Sendable, Hashable {
    /// The first one.
    case start
    /// The first two, two neighbours in the middle, and the last two.
    case edges
    case all
    /// This many, in pairs of neighbours spread over the list.
    case count(Int)
  }

  /// The rungs that are read.
  package enum Rungs: Sendable, Hashable {
    case all
    /// The first and the last of each group.
    case firstAndLast
  }

  /// A link that starts are replayed on.
  package struct Link: Sendable {
    package var name: String
    package var spec: LinkSpec

    package init(name: String, spec: LinkSpec) {
      self.name = name
      self.spec = spec
    }
  }

  package var sample = Sample.edges
  package var rungs = Rungs.all
  /// The most bytes of media to read of a source; nil for no limit. What is not read is not checked.
  package var byteBudget: Int64?
  /// The most time to spend on a source; nil for no limit. What was found until then is kept.
  package var timeLimit: Duration?
  package var links: [Link] = []
  /// True if a user named the links: rungs are then judged by them.
  package var areLinksNamed = false
  /// The device whose costs of decoding count.
  package var device = DeviceModel.mid
  /// True if a user named the device: it then replaces the costs of the model.
  package var isDeviceNamed = false
  /// The model of the player whose starts count; nil for Reel's own.
  package var player: PlayerModel?
  package var thresholds = Thresholds()
  /// How long a live presentation is watched, in seconds; nil for not at all.
  package var watch: Double?
  /// True to take stills where findings about pictures point.
  package var takesStills = false

  package init() {}
}

/// A limit beyond which something is a finding. `--set NAME=VALUE` changes one.
package enum Threshold: String, Sendable, Hashable, CaseIterable {
  case decodeErrorShort = "decode-error.short"
  case blackShare = "black.share"
  case blackStart = "black.start"
  case blackRun = "black.run"
  case silentPeak = "silent.peak"
  case silentDuration = "silent.duration"
  case frozenChange = "frozen.change"
  case frozenDuration = "frozen.duration"
  case timestampGap = "timestamp-break.gap"
  case timestampGapError = "timestamp-break.error"
  case timestampJump = "timestamp-break.jump"
  case trackShort = "track-missing.short"
  case contentCorrelation = "rung-content-differs.correlation"
  case contentShift = "rung-content-differs.shift"
  case durationMismatch = "segment-duration-mismatch.difference"
  case durationMismatchError = "segment-duration-mismatch.error"
  case bandwidthUnderstated = "bandwidth-mismatch.understated"
  case bandwidthUnderstatedLive = "bandwidth-mismatch.live"
  case bandwidthOverstated = "bandwidth-mismatch.overstated"
  case moovSmallFile = "moov-last.small"
  case startBytes = "start-bytes.cost"
  case firstRungHeavy = "first-rung-heavy.cost"
  case rungTooHeavyStall = "rung-too-heavy.stall"
  case ttfbSlow = "ttfb-slow.median"
  case frameRateHigh = "frame-rate-mismatch.high"
  case frameRateLow = "frame-rate-mismatch.low"
  case aspect = "aspect-differs.difference"
  case alignment = "rungs-not-aligned.difference"
  case avOffset = "av-offset.difference"
  case avOffsetError = "av-offset.error"
  case liveStale = "live-stale.targets"
  case printedCost = "cost.printed"

  package enum Unit: String, Sendable {
    case seconds = "s"
    case milliseconds = "ms"
    case percent = "%"
    case decibels = "dB"
    case bytes = "B"
    case times = "x"
  }

  package var usual: (value: Double, unit: Unit) {
    switch self {
    case .decodeErrorShort: (100, .milliseconds)
    case .blackShare: (98, .percent)
    case .blackStart: (1, .seconds)
    case .blackRun: (2, .seconds)
    case .silentPeak: (-60, .decibels)
    case .silentDuration: (5, .seconds)
    case .frozenChange: (100 * 2 / 255.0, .percent)
    case .frozenDuration: (2, .seconds)
    case .timestampGap: (100, .milliseconds)
    case .timestampGapError: (500, .milliseconds)
    case .timestampJump: (2, .seconds)
    case .trackShort: (500, .milliseconds)
    // Encodings of one picture at several sizes correlate by 0.9 and more; patterns that were drawn at each size by 0.75.
    case .contentCorrelation: (60, .percent)
    case .contentShift: (100, .milliseconds)
    case .durationMismatch: (100, .milliseconds)
    case .durationMismatchError: (500, .milliseconds)
    case .bandwidthUnderstated: (110, .percent)
    case .bandwidthUnderstatedLive: (125, .percent)
    case .bandwidthOverstated: (60, .percent)
    case .moovSmallFile: (65_536, .bytes)
    case .startBytes: (100, .milliseconds)
    case .firstRungHeavy: (100, .milliseconds)
    case .rungTooHeavyStall: (1000, .milliseconds)
    case .ttfbSlow: (600, .milliseconds)
    case .frameRateHigh: (105, .percent)
    case .frameRateLow: (90, .percent)
    case .aspect: (2, .percent)
    case .alignment: (50, .milliseconds)
    case .avOffset: (185, .milliseconds)
    case .avOffsetError: (1, .seconds)
    case .liveStale: (1.5, .times)
    case .printedCost: (20, .milliseconds)
    }
  }
}

package struct Thresholds: Sendable, Hashable {
  /// The values that differ from the usual ones, in the unit of each.
  package private(set) var changed: [Threshold: Double] = [:]

  package init() {}

  /// The value in its unit.
  package subscript(threshold: Threshold) -> Double {
    get { changed[threshold] ?? threshold.usual.value }
    set { changed[threshold] = newValue == threshold.usual.value ? nil : newValue }
  }

  /// The value of a time in seconds, and that of a share as a fraction of 1.
  package func normalized(_ threshold: Threshold) -> Double {
    switch threshold.usual.unit {
    case .milliseconds: self[threshold] / 1000
    case .percent: self[threshold] / 100
    case .seconds, .decibels, .bytes, .times: self[threshold]
    }
  }
}
