import ReelLab
import ReelCore
import ReelFFmpeg
import ReelManifest
internal import ReelReading
public import ReelSources

extension VideoFrame {
  /// The media's presentation timestamp in seconds, for JSON; 0 if the frame has none.
  var ptsTime: Double {
    (Double(presentationTicks ?? 0) * stream.timeBase.value).rounded(places: 6)
  }
}

/// Milliseconds, requests and bytes by stage.
extension StartupReport: Encodable {
  public func encode(to encoder: any Encoder) throws {
    try encoder.encode(["total_ms": total, "queued_ms": queued])
    for stage in Stage.allCases {
      let entry = self[stage]
      let cost: JSONFields = [
        "ms": entry.duration, "requests": entry.requestCount, "bytes": entry.byteCount,
      ]
      try encoder.encode([stage.rawValue: cost])
    }
  }
}

extension Rung {
  var codecText: String? { codecs.isEmpty ? nil : codecs.joined(separator: ",") }
}

extension Rational {
  /// `4:3`.
  var ratioText: String { "\(numerator):\(denominator)" }
}

extension ContentProtection {
  /// The encryption of samples as stated in a manifest, as JSON.
  var fields: JSONFields { ["schemes": schemes, "key_ids": keyIDs.map(\.description)] }
}
