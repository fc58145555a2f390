import ReelCore
import ReelFFmpeg
import ReelPool

/// What `reel calibrate --json` prints.
struct CalibrationRecord: Encodable {
  struct Cost: Encodable {
    let codec: String
    let frameMs: Double
    let pixelNs: Double

    init(_ codec: String, _ cost: DecodeCost.Frame) {
      self.codec = codec
      frameMs = Self.milliseconds(cost.constant)
      pixelNs = (cost.nanosecondsPerPixel * 1000).rounded() / 1000
    }

    static func milliseconds(_ duration: Duration) -> Double {
      (duration / .nanoseconds(1)).rounded() / 1e6
    }
  }

  struct Sample: Encodable {
    let codec: String
    let pixels: Int
    let frames: Int
    let frameMs: Double
  }

  let name: String
  let cores: Int
  let decoderOpenMs: Double
  /// One for each measured codec, then `others`.
  let decode: [Cost]
  let samples: [Sample]

  init(_ device: DeviceModel, _ measurement: DecodeMeasurement) {
    name = device.name
    cores = device.coreCount
    decoderOpenMs = Cost.milliseconds(device.decodeCost.opening)
    decode =
      VideoCodec.allCases.compactMap { codec in
        device.decodeCost.codecs[codec].map { Cost(codec.rawValue, $0) }
      } + [Cost("others", device.decodeCost.others)]
    samples = measurement.samples.map {
      Sample(
        codec: $0.codec?.rawValue ?? "unknown", pixels: $0.pixelCount, frames: $0.frameCount,
        frameMs: Cost.milliseconds($0.frameDuration))
    }
  }

  /// A table of the measurements and the costs derived from them.
  static func text(_ device: DeviceModel, _ measurement: DecodeMeasurement) -> String {
    var table = TextTable([.left], indentation: 2)
    table.add(["codec", "pixels", "frames", "per frame"])
    for sample in measurement.samples {
      table.add([
        sample.codec?.rawValue ?? "unknown", "\(sample.pixelCount)", "\(sample.frameCount)",
        DurationText.readable(sample.frameDuration),
      ])
    }
    let cores = device.coreCount.counted("core")
    let opening = DurationText.readable(device.decodeCost.opening)
    let title = "\(device.name): \(cores), opening a decoder \(opening)".printable
    return ([title] + table.lines).joined(separator: "\n")
  }
}
