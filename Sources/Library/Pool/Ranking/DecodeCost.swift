public import ReelFFmpeg
internal import ReelCore

/// The time that decoding takes in a simulation.
///
/// Each call into a decoder takes one access unit and gives at most one frame, so the cost of a call is that of a
/// frame.
public struct DecodeCost: Sendable, Hashable {
  /// The time that a frame takes: a constant, and a part for each pixel.
  public struct Frame: Sendable, Hashable {
    /// The constant part, not negative.
    public let constant: Duration
    /// The part for each pixel, in nanoseconds, not negative.
    public let nanosecondsPerPixel: Double

    /// A cost from its parts. A negative value, or one that is not finite, counts as zero.
    public init(constant: Duration = .zero, nanosecondsPerPixel: Double = 0) {
      self.constant = max(constant, .zero)
      self.nanosecondsPerPixel = nanosecondsPerPixel.isFinite ? max(nanosecondsPerPixel, 0) : 0
    }

    /// The time of a frame of so many pixels, in whole nanoseconds and at most an hour.
    public func duration(pixelCount: Int) -> Duration {
      let pixels = min(Double(max(pixelCount, 0)) * nanosecondsPerPixel, 3.6e12)
      return min(constant + .nanoseconds(Int64(pixels.rounded())), .seconds(3600))
    }
  }

  /// The time of opening a decoder, not negative.
  public var opening: Duration
  /// The time of a frame of the codecs that have their own.
  public var codecs: [VideoCodec: Frame]
  /// The time of a frame of all other codecs.
  public var others: Frame

  /// The constant part of `others`: for a cost made with ``init(frame:)``, the time of every frame.
  public var frame: Duration { others.constant }

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
  public init(opening: Duration, codecs: [VideoCodec: Frame], others: Frame) {
    self.opening = max(opening, .zero)
    self.codecs = codecs
    self.others = others
  }

  /// The time of a frame.
  package func duration(of codec: VideoCodec?, pixelCount: Int) -> Duration {
    (codec.flatMap { codecs[$0] } ?? others).duration(pixelCount: pixelCount)
  }
}
