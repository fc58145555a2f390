package import ReelCore
internal import ReelFFmpeg
package import ReelPool

/// The limits and decoding costs of a device, for the limits of a pool and for simulations.
///
/// The built-in devices are rough. Their decoding rates are derived from the requirements of the Android
/// Compatibility Definition Document (section 2.2.7.1, Media Performance Class) for phones: `mid` decodes six
/// videos of 720p at 30 frames per second at once (Android 12: 166 million pixels per second), `high` six of
/// 1080p (Android 13: 373 million). `low` has half the rate of `mid`, and only two decoders, as phones
/// without a performance class may. The class of Android 13 opens a decoder within 40 ms. The other opening
/// times, the constant of 1 ms per frame, the higher costs of AV1, and the limits of memory and transfers are
/// estimates.
///
/// | | `low` | `mid` | `high` |
/// |---|---|---|---|
/// | open decoders | 2 | 6 | 6 |
/// | cores | 1 | 2 | 4 |
/// | opening a decoder | 80 ms | 60 ms | 40 ms |
/// | a pixel of H.264, HEVC, VP9 and others | 12 ns | 12 ns | 10.7 ns |
/// | a pixel of AV1 | 36 ns | 24 ns | 10.7 ns |
/// | constant part of a frame | 1 ms | 1 ms | 1 ms |
/// | memory of a pool | 96 MB | 192 MB | 384 MB |
/// | transfers at once | 4 | 6 | 8 |
public struct DeviceModel: Sendable, Hashable {
  package var name: String
  /// The number of video decoders that may be open at once, at least 1; `nil` for no limit.
  package var decoderLimit: Int?
  /// The number of decoders that run at once, at least 1: cores, or hardware units.
  package var coreCount: Int
  /// The bytes that a pool may hold, at least 1; `nil` for no limit.
  package var memoryLimit: Int?
  /// The number of transfers that run at once, at least 1; `nil` for no limit.
  package var transferLimit: Int?
  /// The time that opening a decoder and decoding a frame take on one core.
  package var decodeCost: DecodeCost

  /// A device.
  public init(
    name: String, decoderLimit: Int?, coreCount: Int, memoryLimit: Int? = nil, transferLimit: Int? = nil,
    decodeCost: DecodeCost
  ) {
    self.name = name
    self.decoderLimit = decoderLimit
    self.coreCount = coreCount
    self.memoryLimit = memoryLimit
    self.transferLimit = transferLimit
    self.decodeCost = decodeCost
  }

  /// A phone below the performance classes of Android.
  public static let low = DeviceModel(
    name: "low", decoderLimit: 2, coreCount: 1, memoryLimit: 96_000_000, transferLimit: 4,
    decodeCost: cost(opening: .milliseconds(80), pixel: 12, av1Pixel: 36))

  /// A phone of the performance class of Android 12.
  public static let mid = DeviceModel(
    name: "mid", decoderLimit: 6, coreCount: 2, memoryLimit: 192_000_000, transferLimit: 6,
    decodeCost: cost(opening: .milliseconds(60), pixel: 12, av1Pixel: 24))

  /// A phone of the performance class of Android 13.
  public static let high = DeviceModel(
    name: "high", decoderLimit: 6, coreCount: 4, memoryLimit: 384_000_000, transferLimit: 8,
    decodeCost: cost(opening: .milliseconds(40), pixel: 10.7, av1Pixel: 10.7))

  /// The built-in devices: `low`, `mid` and `high`.
  package static let builtIn = [low, mid, high]

  /// Returns the built-in device with this name.
  ///
  /// - Throws: `ReelError` of kind `usage` for another name.
  package init(argument: String) throws(ReelError) {
    guard let known = Self.builtIn.first(where: { $0.name == argument.lowercased() }) else {
      let names = Self.builtIn.map(\.name).joined(separator: ", ")
      throw ReelError(.usage, "\"\(argument)\" is not a device", advice: "write one of \(names)")
    }
    self = known
  }

  // MARK: - Private

  private static func cost(opening: Duration, pixel: Double, av1Pixel: Double) -> DecodeCost {
    let frame = DecodeCost.Frame(constant: .milliseconds(1), nanosecondsPerPixel: pixel)
    let av1 = DecodeCost.Frame(constant: .milliseconds(1), nanosecondsPerPixel: av1Pixel)
    return DecodeCost(
      opening: opening, codecs: [.h264: frame, .hevc: frame, .vp9: frame, .av1: av1], others: frame)
  }
}

extension PoolConfiguration {
  /// Applies the limits of a device: open decoders, cores, memory and transfers. Costs apply only in a
  /// simulation.
  package mutating func apply(limitsOf device: DeviceModel) {
    maximumOpenDecoders = device.decoderLimit
    decodingPermits = device.coreCount
    memoryLimit = device.memoryLimit
    maximumTransfers = device.transferLimit
  }
}

/// The time that decoding takes in a simulation.
///
/// Each call into a decoder takes one access unit and gives at most one frame, so the cost of a call is that of a
/// frame.
public struct DecodeCost: Sendable, Hashable {
  /// The time that a frame takes: a constant, and a part for each pixel.
  package struct Frame: Sendable, Hashable {
    /// The constant part, not negative.
    package let constant: Duration
    /// The part for each pixel, in nanoseconds, not negative.
    package let nanosecondsPerPixel: Double

    /// A cost from its parts. A negative value, or one that is not finite, counts as zero.
    package init(constant: Duration = .zero, nanosecondsPerPixel: Double = 0) {
      self.constant = max(constant, .zero)
      self.nanosecondsPerPixel = nanosecondsPerPixel.isFinite ? max(nanosecondsPerPixel, 0) : 0
    }

    /// The time of a frame of so many pixels, in whole nanoseconds and at most an hour.
    package func duration(pixelCount: Int) -> Duration {
      let pixels = min(Double(max(pixelCount, 0)) * nanosecondsPerPixel, 3.6e12)
      return min(constant + .nanoseconds(Int64(pixels.rounded())), .seconds(3600))
    }
  }

  /// The time of opening a decoder, not negative.
  package var opening: Duration
  /// The time of a frame of the codecs that have their own.
  package var codecs: [VideoCodec: Frame]
  /// The time of a frame of all other codecs.
  package var others: Frame

  /// The constant part of `others`: for a cost made with ``init(frame:)``, the time of every frame.
  package var frame: Duration { others.constant }

  /// The same cost for every frame, whatever its codec and size. Opening a decoder costs nothing.
  ///
  /// - Parameter frame: The time for one frame. A negative time counts as zero. Defaults to 4 ms.
  public init(frame: Duration = .milliseconds(4)) {
    self.init(opening: .zero, codecs: [:], others: Frame(constant: frame))
  }

  /// Costs by codec and size.
  ///
  /// - Parameters:
  ///   - opening: The time of opening a decoder. A negative time counts as zero.
  ///   - codecs: The time of a frame, by codec.
  ///   - others: The time of a frame of all other codecs.
  package init(opening: Duration, codecs: [VideoCodec: Frame], others: Frame) {
    self.opening = max(opening, .zero)
    self.codecs = codecs
    self.others = others
  }

  /// The time of a frame.
  package func duration(of codec: VideoCodec?, pixelCount: Int) -> Duration {
    (codec.flatMap { codecs[$0] } ?? others).duration(pixelCount: pixelCount)
  }
}
