import ReelFFmpeg
import ReelPool

/// How long decoders took on this machine.
struct DecodeMeasurement: Sendable {
  /// Frames of one codec and size.
  struct Sample: Sendable {
    let codec: VideoCodec?
    /// Of a frame.
    let pixelCount: Int
    var frameCount = 0
    /// Of all of them.
    var duration = Duration.zero

    /// The mean.
    var frameDuration: Duration { frameCount > 0 ? duration / frameCount : .zero }
  }

  /// By codec, then by size.
  private(set) var samples: [Sample] = []
  /// How long it took to open each decoder.
  private(set) var openings: [Duration] = []

  /// Notes the time of calls into a decoder.
  mutating func note(codec: VideoCodec?, pixelCount: Int, frameCount: Int, duration: Duration) {
    let index: Int
    if let known = samples.firstIndex(where: { $0.codec == codec && $0.pixelCount == pixelCount }) {
      index = known
    } else {
      let key = (codec?.rawValue ?? "", pixelCount)
      index = samples.firstIndex { ($0.codec?.rawValue ?? "", $0.pixelCount) > key } ?? samples.count
      samples.insert(Sample(codec: codec, pixelCount: pixelCount), at: index)
    }
    samples[index].frameCount += frameCount
    samples[index].duration += duration
  }

  mutating func note(opening duration: Duration) { openings.append(duration) }

  mutating func add(_ other: DecodeMeasurement) {
    openings += other.openings
    for sample in other.samples {
      note(
        codec: sample.codec, pixelCount: sample.pixelCount, frameCount: sample.frameCount,
        duration: sample.duration)
    }
  }

  var frameCount: Int { samples.reduce(0) { $0 + $1.frameCount } }

  /// The mean time of all frames; nil if there are none.
  var frameDuration: Duration? {
    frameCount > 0 ? samples.reduce(.zero) { $0 + $1.duration } / frameCount : nil
  }

  /// The median; zero if no decoder was opened.
  var openingDuration: Duration { openings.isEmpty ? .zero : openings.sorted()[openings.count / 2] }

  /// The costs that fit best. Nil if no frame of a known size was decoded.
  ///
  /// Frames of at least two sizes of a codec give a constant and a part for each pixel, by least squares weighted with
  /// the number of frames; frames of one size give only the part for each pixel. Codecs that were not measured cost as
  /// much as the slowest one that was, at 720x1280.
  var cost: DecodeCost? {
    var codecs: [VideoCodec: DecodeCost.Frame] = [:]
    var slowest: DecodeCost.Frame?
    let size = 720 * 1280
    for codec in VideoCodec.allCases {
      let own = samples.filter { $0.codec == codec && $0.pixelCount > 0 && $0.frameCount > 0 }
      guard let fit = Self.fit(own) else { continue }
      codecs[codec] = fit
      if slowest.map({ $0.duration(pixelCount: size) < fit.duration(pixelCount: size) }) ?? true {
        slowest = fit
      }
    }
    return slowest.map { DecodeCost(opening: openingDuration, codecs: codecs, others: $0) }
  }

  // MARK: - Private

  private static func fit(_ samples: [Sample]) -> DecodeCost.Frame? {
    let points = samples.map { sample in
      (
        x: Double(sample.pixelCount), y: sample.frameDuration / .nanoseconds(1),
        weight: Double(sample.frameCount)
      )
    }
    let weight = points.reduce(0) { $0 + $1.weight }
    guard weight > 0 else { return nil }
    let (x, y) = points.reduce((0, 0)) {
      ($0.0 + $1.x * $1.weight / weight, $0.1 + $1.y * $1.weight / weight)
    }
    let square = points.reduce(0) { $0 + $1.weight * ($1.x - x) * ($1.x - x) }
    let product = points.reduce(0) { $0 + $1.weight * ($1.x - x) * ($1.y - y) }
    guard points.count > 1, square > 0 else { return DecodeCost.Frame(nanosecondsPerPixel: y / x) }
    let slope = product / square
    // Neither part can be negative.
    guard slope > 0 else { return DecodeCost.Frame(constant: .nanoseconds(Int64(y.rounded()))) }
    let constant = y - slope * x
    guard constant > 0 else { return DecodeCost.Frame(nanosecondsPerPixel: y / x) }
    return DecodeCost.Frame(constant: .nanoseconds(Int64(constant.rounded())), nanosecondsPerPixel: slope)
  }
}
