import ReelCore
import ReelFFmpeg
import ReelPool

extension DeviceModel {
  /// The figures in one line.
  var summary: String {
    var limits: [String] = []
    if let decoderLimit { limits.append("\(decoderLimit) decoders") }
    limits.append(coreCount.counted("core"))
    if let memoryLimit { limits.append("\(ByteSize(byteCount: memoryLimit))") }
    if let transferLimit { limits.append("\(transferLimit) transfers") }
    var cost = "opening \(DurationText.readable(decodeCost.opening)), frame \(Self.text(decodeCost.others))"
    if let av1 = decodeCost.codecs[.av1], av1 != decodeCost.others { cost += " (AV1 \(Self.text(av1)))" }
    return "\(limits.joined(separator: ", ")); \(cost)"
  }

  private static func text(_ cost: DecodeCost.Frame) -> String {
    "\(DurationText.readable(cost.constant)) + \(cost.nanosecondsPerPixel.formatted(places: 3)) ns per pixel"
  }
}
